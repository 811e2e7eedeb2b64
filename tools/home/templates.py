# SPDX-License-Identifier: MIT
"""The ways in which people say things.

One line is one template group: (a|b) is a choice, [a] is optional, {x} is filled in.
A line that starts with ! is said as it stands; the others are commands that may
get a "could you ..." or a "... please" around them. Whole lines are kept out of
training by a hash (held_out), so that unseen templates can be measured.
"""
import hashlib
import re

import wordings

T = {}

T["on"] = """
turn on {t}
turn {t} on
switch on {t}
switch {t} on
put {t} on
put on {t}
(power|fire|start) up {t}
(start|activate|enable|engage) {t}
get {t} (going|running|started)
{t} on
{t} (turn|switch) on
on with {t}
make sure {t} (is|are) on
flip {t} on
flick {t} on
flick on {t}
power on {t}
power {t} on
turn {t} back on
switch {t} back on
bring {t} on
have {t} (on|running)
let {t} run
run {t}
give {t} some power
!i (want|need) {t} on
!i'd like {t} on
!i would like {t} (on|turned on|switched on)
!{t} should be on
!(can|could|may) (i|we) have {t} on
!let's (have|get|turn) {t} on
!let's turn on {t}
!(would|do) you mind (turning|switching) {t} on
!(would|do) you mind (turning|switching|putting) on {t}
!how about (turning|switching) on {t}
!(it's|it is) time to (turn|switch) on {t}
!(someone|somebody) turn on {t}
!why (isn't|is not|aren't) {t} on turn (it|that|them) on
!{t} needs to be (on|turned on|switched on)
!(we|i) need to have {t} (on|running)
!get me {t} on
!set {t} to on
turn {t} to on
!{t} (is|are) off (turn|switch) (it|them) on
!i wish {t} (was|were) on
!it would be (nice|good) to have {t} on
!{t} please turn (it|them) on
!i'm going to need {t} on
!you forgot to turn on {t}
throw on {t}
set {t} running
wake up {t}
spin up {t}
"""
T["off"] = """
turn off {t}
turn {t} off
switch off {t}
switch {t} off
shut off {t}
shut {t} off
put {t} off
cut {t}
kill {t}
(power|shut) down {t}
power {t} (off|down)
power off {t}
(stop|disable|deactivate|end) {t}
{t} off
{t} (turn|switch) off
off with {t}
make sure {t} (is|are) off
flip {t} off
flick {t} off
flick off {t}
turn {t} back off
have {t} off
quit {t}
!i (want|need) {t} off
!i'd like {t} off
!i would like {t} (off|turned off|switched off)
!{t} should be off
!(can|could|may) (i|we) have {t} off
!let's (have|get|turn) {t} off
!let's turn off {t}
!(would|do) you mind (turning|switching) {t} off
!(would|do) you mind (turning|switching) off {t}
!how about (turning|switching) off {t}
!(it's|it is) time to (turn|switch) off {t}
!(someone|somebody) turn off {t}
!(i|we) (don't|do not) need {t} (anymore|any more|any longer|right now)
!(no|nobody) needs {t} turn (it|that|them) off
!{t} can go off
!{t} (can|may) be (turned|switched) off
!i forgot to (turn|switch) off {t}
!i left {t} on (turn|switch) (it|that|them) off
!(we're|we are|i'm|i am) (done|finished) with {t}
!that's enough (of|from) {t}
!set {t} to off
!(i|we) don't want {t} on (anymore|any more|now)
!who left {t} on (turn|switch) (it|them|that) off
turn {t} to off
!{t} (is|are) (still|) on (turn|switch) (it|them) off
!it would be (nice|good) to have {t} off
!{t} please turn (it|them) off
!you can (turn|switch) {t} off (now|)
!you left {t} on
cut the power to {t}
shut down {t}
put {t} out
!no more {t}
have {t} stop
!i've had enough of {t}
"""
T["light_on"] = """
light up {t}
illuminate {t}
brighten up {t} room
let there be light {in}
lights on {in}
light on {in}
give me (some|a little|more) light {in}
put (some|the) lights on {in}
!(it's|it is) [a bit|a little|so|too|really|very|pretty|way too] dark {in}
!i (can't|can not|cannot) see (a thing|anything|much|well) {in}
!i need (some |more |)light {in}
!(could|can) (i|we) (have|get) (some|a bit of|a little) light {in}
!why is it so dark {in}
!(it's|it is) (getting|gotten|become) dark {in}
!(it's|it is) (pitch black|gloomy|dim|murky) {in}
!there (is|is just) no light {in}
!we (could use|need) (some|a bit of) light {in}
!i'm (sitting|standing) in the dark {in}
!i can barely see {in}
!where did the light go {in}
!i'd like to see something {in}
make it (bright|light) {in}
brighten (it|things) up {in}
light it up {in}
"""
T["light_off"] = """
lights out {in}
lights off {in}
light off {in}
darken everything {in}
make it dark {in}
black out the lights {in}
!we don't need (any|the) (light|lights) {in}
!there's no need for (the|any) lights {in}
!nobody is {in} turn the lights off
!no one is {in} anymore so switch off the lights
!kill the lights {in}
!i want it dark {in}
!the lights can go off {in}
!it's time to sleep lights off {in}
make it (pitch black|completely dark) {in}
"""
T["open"] = """
open {t}
open up {t}
raise {t}
pull up {t}
pull {t} up
lift {t}
roll up {t}
roll {t} up
put {t} up
(draw|pull) {t} open
draw {t} back
get {t} open
(slide|crack|swing) {t} open
{t} up
{t} open
open {t} (fully|completely|all the way|up all the way)
let {t} up
!i (want|need|would like) {t} open
!(could|can) we have {t} open
!let's open {t}
!(would|do) you mind opening {t}
!{t} should be open
!set {t} to open
!it's morning open {t}
"""
T["close"] = """
close {t}
shut {t}
lower {t}
pull down {t}
pull {t} down
roll down {t}
roll {t} down
put {t} down
drop {t}
draw {t}
(draw|pull) {t} (shut|closed)
get {t} closed
(slide|swing) {t} shut
{t} down
{t} closed
{t} shut
close up {t}
close {t} (fully|completely|all the way)
let {t} down
!i (want|need|would like) {t} (closed|shut)
!(could|can) we have {t} (closed|shut)
!let's close {t}
!(would|do) you mind closing {t}
!{t} should be (closed|shut)
!set {t} to closed
!make sure {t} (is|are) (closed|shut)
!somebody left {t} open close (it|them)
"""
T["lock"] = """
lock {t}
lock up {t}
bolt {t}
secure {t}
get {t} locked
make sure {t} is locked
{t} lock
{t} locked
put the lock on {t}
lock {t} up
!i (want|need) {t} locked
!(would|do) you mind locking {t}
!{t} should be locked
!did i lock {t} if not lock it
!i forgot to lock {t}
!let's lock {t}
!{t} needs to be locked
"""
T["unlock"] = """
unlock {t}
unbolt {t}
open {t}
open up {t}
release {t}
get {t} unlocked
{t} unlock
take the lock off {t}
undo the lock on {t}
let (me|him|her|them|us|the plumber|my sister) in through {t}
!i (want|need) {t} (unlocked|open)
!(would|do) you mind unlocking {t}
!{t} should be unlocked
!let's unlock {t}
!i can't get in unlock {t}
!someone is at {t} unlock it
free {t}
let {t} open
open the lock on {t}
disengage {t}
!{t} can be unlocked
!please have {t} unlocked
make sure {t} is unlocked
get {t} open
!i'm outside open {t}
"""
T["scene"] = """
activate {t}
activate (the|my) {t} (scene|mode|setting)
turn on {t}
turn on {t} mode
start {t}
start (the|my) {t} (scene|routine)
run {t}
run the {t} (script|routine|scene)
set (the|a) {t} (scene|mood)
set the scene (to|for) {t}
set the mood for {t}
switch to {t}
switch to {t} mode
put on {t}
(do|execute|trigger|launch|begin) {t}
go to {t} mode
{t}
{t} please
{t} mode
{t} scene
!let's do {t}
!i'd like (the|some) {t} (scene|mode)
!(it's|it is) time for {t}
!(we're|we are) ready for {t}
!time for {t}
!make it {t}
!can we have {t}
"""
# brightness; {v} "forty percent", {n} just the number
T["bright"] = """
set {t} to {v}
set {t} to {v} brightness
set the brightness of {t} to {v}
set {t} brightness to {v}
set brightness to {v} (for|on) {t}
dim {t} to {v}
dim {t} down to {v}
(brighten|raise|bring up) {t} to {v}
turn {t} (up|down) to {v}
turn {t} to {v}
turn {t} on (at|to) {v}
put {t} (at|on|to) {v}
make {t} {v}
make {t} {v} bright
change {t} to {v}
change the brightness of {t} to {v}
adjust {t} to {v}
adjust the brightness (of|on|for) {t} to {v}
bring {t} (up|down) to {v}
lower {t} to {v}
{t} to {v}
{t} at {v}
{t} {v}
{t} {v} brightness
{t} brightness {v}
{v} on {t}
{v} brightness (on|for|in) {t}
(give me|i want) {t} at {v}
take {t} (down|up) to {v}
run {t} at {v}
have {t} at {v}
!i'd like {t} at {v}
!i want {t} to be {v} bright
!(can|could) (i|we|you) (have|get) {t} (at|to) {v}
!let's have {t} at {v}
!{t} should be (at|on) {v}
(raise|lower|increase|decrease|reduce) the brightness of {t} to {v}
(increase|decrease|reduce) {t} to {v}
!i think {v} is right for {t}
!{t} would be nice at {v}
get {t} to {v}
drop {t} to {v}
fade {t} to {v}
"""
T["bright_max"] = """
set {t} to (full|maximum|max|the maximum|full power)
set {t} to (full|maximum) brightness
{t} (full|max|maximum) (brightness|power)
{t} all the way up
{t} on full
turn {t} all the way up
turn {t} up (fully|to the max|to full|all the way|as far as it goes|completely)
make {t} as bright as (possible|it gets|it goes|you can)
make {t} (really|super|very) bright
max out {t}
crank {t} (all the way up|to the max)
!i want {t} as bright as possible
!i need {t} at full (blast|brightness)
"""
T["bright_min"] = """
set {t} to (the|its|their) (minimum|lowest|lowest setting|dimmest)
set {t} to (minimum|lowest|min) brightness
{t} (minimum|lowest|min) brightness
dim {t} all the way down
dim {t} as (low|far) as (possible|it goes)
turn {t} all the way down
turn {t} down to the minimum
make {t} as dim as (possible|it gets|it goes)
put {t} on (the|its) lowest (setting|level)
!i want {t} as low as it goes
"""
T["color"] = """
set {t} to {c}
set the color of {t} to {c}
set {t} color to {c}
turn {t} {c}
turn {t} to {c}
make {t} {c}
change {t} to {c}
change the colo(r|ur) of {t} to {c}
switch {t} to {c}
paint {t} {c}
put {t} (on|to) {c}
color {t} {c}
{t} {c}
{t} to {c}
{t} in {c}
{c} {t_bare}
{c} light (on|for|from) {t}
(light|bathe) {t} in {c}
give me {c} (on|for|from) {t}
!i want {t} [to be] {c}
!i'd like {t} (in|to be) {c}
!(can|could) {t} be {c}
!(can|could) (you|we) have {t} [in] {c}
!let's have {t} in {c}
!{t} should be {c}
!how about {c} for {t}
"""
T["color_bright"] = """
set {t} to {c} at {v}
set {t} to {c} and {v}
set {t} to {v} and {c}
set {t} to {v} {c}
make {t} {c} at {v}
make {t} {c} and dim (it|them) to {v}
turn {t} {c} at {v}
turn {t} {c} with {v} brightness
{t} {c} {v}
{t} {c} at {v}
{t} at {v} in {c}
change {t} to {c} with [a] brightness of {v}
!i want {t} {c} at {v}
!i'd like {t} in {c} at {v} brightness
"""
T["on_color"] = """
turn on {t} and make (it|them) {c}
turn on {t} in {c}
turn {t} on in {c}
switch on {t} and set (it|them) to {c}
put {t} on in {c}
"""
T["on_bright"] = """
turn on {t} at {v}
turn on {t} to {v}
turn {t} on and (dim|set|put) (it|them) to {v}
switch on {t} at {v} brightness
switch {t} on to {v}
put {t} on at {v}
"""
T["ctemp"] = """
set {t} to {k}
set the color temperature of {t} to {k}
set {t} color temperature to {k}
make {t} {k}
change {t} to {k}
switch {t} to {k}
turn {t} (to|on in) {k}
put {t} on {k}
{t} (to|in|on) {k}
{t} {k}
give {t} a {k} (tone|color|light|glow)
!i want {t} [in] {k}
!i'd like {t} to be {k}
!(can|could) {t} be {k}
!let's have {t} in {k}
!how about {k} for {t}
"""
T["ctemp_bright"] = """
set {t} to {k} at {v}
make {t} {k} at {v} brightness
{t} {k} {v}
set {t} to {k} and {v}
turn {t} to {k} with {v} brightness
"""
# relative: {by} is "by fifteen percent", "a bit", "a lot" or nothing
T["brighter"] = """
make {t} {by} brighter
turn up {t} {by}
turn {t} up {by}
brighten {t} {by}
brighten {t} up {by}
{t} {by} brighter
{t} up {by}
raise [the brightness of] {t} {by}
increase {t} {by}
increase the brightness (of|on|for) {t} {by}
bring {t} up {by}
bump {t} up {by}
push {t} up {by}
!i (want|need) {t} {by} brighter
!{t} (is|are) too (dim|dark|weak|low)
!{t} (isn't|aren't|is not) bright enough
!(could|can) {t} be {by} brighter
!can (we|i) have {t} {by} brighter
"""
T["dimmer"] = """
make {t} {by} (dimmer|darker|less bright)
turn down {t} {by}
turn {t} down {by}
dim {t} {by}
dim {t} down {by}
{t} {by} (dimmer|darker)
{t} down {by}
lower [the brightness of] {t} {by}
decrease {t} {by}
decrease the brightness (of|on|for) {t} {by}
reduce [the brightness of] {t} {by}
bring {t} down {by}
take {t} down {by}
soften {t} {by}
tone {t} down {by}
!i (want|need) {t} {by} (dimmer|darker)
!{t} (is|are) too (bright|strong|harsh)
!{t} (hurts|hurt) my eyes
!(could|can) {t} be {by} (dimmer|darker)
!can (we|i) have {t} {by} (darker|dimmer)
"""
T["too_bright"] = """
!(it's|it is) [a bit|a little|much|way|far] too bright {in}
!(it's|it is) so bright {in}
!the light {in} is blinding [me]
!it is glaring {in}
!i'm blinded {in}
"""
T["position"] = """
set {t} to {v}
set {t} to {v} open
set the position of {t} to {v}
set {t} position to {v}
open {t} to {v}
open {t} {v}
open {t} up to {v}
close {t} to {v}
lower {t} to {v}
raise {t} to {v}
pull {t} (up|down) to {v}
move {t} to {v}
put {t} (at|to) {v}
bring {t} (up|down|) to {v}
{t} to {v}
{t} at {v}
{t} {v}
{t} {v} open
roll {t} (up|down) to {v}
!i want {t} (at|on) {v}
!i'd like {t} {v} open
!{t} should be {v} open
!let's have {t} at {v}
"""
T["position_half"] = """
open {t} (halfway|half way|half)
close {t} (halfway|half way|half)
set {t} to (half|halfway|half open|the middle)
(lower|raise|pull down|pull up) {t} (halfway|half way|half)
{t} (half open|halfway|half way)
put {t} halfway [up|down]
!i want {t} half open
"""
T["opener"] = """
open {t} {by} more
open {t} {by} (further|wider)
raise {t} {by}
bring {t} up {by}
pull {t} up {by} [more]
{t} up {by}
move {t} up {by}
!{t} should be open {by} more
"""
T["closer"] = """
close {t} {by} more
close {t} {by} further
lower {t} {by}
bring {t} down {by}
pull {t} down {by} [more]
{t} down {by}
move {t} down {by}
!{t} should be closed {by} more
"""
T["fan"] = """
set {t} to {v}
set {t} to {v} speed
set the speed of {t} to {v}
set {t} speed to {v}
run {t} at {v}
turn {t} to {v}
turn {t} (up|down) to {v}
turn {t} on at {v}
put {t} (on|at|to) {v}
{t} to {v}
{t} at {v}
{t} {v}
{t} speed {v}
make {t} run at {v}
change {t} [speed] to {v}
spin {t} at {v}
(slow|speed) {t} (down|up) to {v}
{v} on {t}
!i want {t} (at|on) {v}
!i'd like {t} at {v} speed
!let's have {t} at {v}
"""
T["fan_max"] = """
set {t} to (full|maximum|max|full speed|the highest setting|high)
run {t} at (full|top|maximum) speed
{t} (full speed|on full|to the max|on max|full power|flat out)
turn {t} all the way up
put {t} on (full|max|the highest setting|full blast)
crank {t} (up all the way|to the max)
!i want {t} on full
"""
T["faster"] = """
make {t} {by} faster
turn {t} up {by}
turn up {t} {by}
speed {t} up {by}
speed up {t} {by}
{t} {by} faster
{t} up {by}
increase {t} [speed] {by}
raise the speed of {t} {by}
!{t} should (spin|go|run|blow) {by} faster
!i need {t} {by} stronger
!{t} (is|are) too (slow|weak)
"""
T["slower"] = """
make {t} {by} slower
turn {t} down {by}
turn down {t} {by}
slow {t} down {by}
slow down {t} {by}
{t} {by} slower
{t} down {by}
decrease {t} [speed] {by}
lower the speed of {t} {by}
!{t} should (spin|go|run|blow) {by} slower
!{t} (is|are) too (fast|strong|loud|noisy)
"""
T["stuffy"] = """
!(it's|it is) [a bit|so|really|very] (stuffy|muggy) {in}
!(it's|it is) hard to breathe {in}
!i need (some|a little) (air|breeze|fresh air) {in}
!there's no air {in}
!we need some air {in}
get some air moving {in}
"""
T["temp"] = """
set {t} to {v}
set the temperature (of|on) {t} to {v}
set {t} temperature to {v}
turn {t} (up|down) to {v}
turn {t} to {v}
put {t} (at|on|to) {v}
change {t} to {v}
adjust {t} to {v}
make {t} {v}
{t} to {v}
{t} at {v}
{t} {v}
lower {t} to {v}
raise {t} to {v}
bring {t} (up|down) to {v}
keep {t} at {v}
heat {t} to {v}
have {t} at {v}
!i want {t} (at|on) {v}
!i'd like {t} (at|to be) {v}
!{t} should be (at|on|set to) {v}
!let's (set|have|put) {t} (to|at) {v}
!(can|could) (we|i) have {t} (at|on) {v}
"""
T["temp_room"] = """
set the temperature {in} to {v}
set the (heating|heat|thermostat|climate) {in} to {v}
set {room} to {v}
make it {v} {in}
make {room} {v}
heat {room} to {v}
heat up {room} to {v}
cool {room} [down] to {v}
warm {room} [up] to {v}
change the temperature {in} to {v}
turn the (heating|heat|temperature|thermostat) {in} (up|down|) to {v}
turn the temperature (up|down|) to {v} {in}
bring {room} (up|down|) to {v}
keep {room} at {v}
{room} to {v}
{v} {in} please
temperature {in} {v}
get {room} to {v}
put the heating {in} on {v}
!i want it [to be] {v} {in}
!i'd like it (to be|at) {v} {in}
!it should be {v} {in}
!i want {room} at {v}
!(can|could) we have {v} {in}
!let's have {v} {in}
!let's make it {v} {in}
"""
T["warmer"] = """
turn {t} up {by}
turn up {t} {by}
raise {t} {by}
raise the temperature (of|on) {t} {by}
increase {t} {by}
bump up {t} {by}
bump {t} up {by}
{t} up {by}
{t} {by} (warmer|higher)
set {t} {by} (warmer|higher)
make {t} {by} (warmer|hotter)
"""
T["cooler"] = """
turn {t} down {by}
turn down {t} {by}
lower {t} {by}
lower the temperature (of|on) {t} {by}
decrease {t} {by}
reduce {t} {by}
drop {t} {by}
{t} down {by}
{t} {by} (cooler|lower|colder)
set {t} {by} (cooler|lower)
make {t} {by} (cooler|colder)
"""
T["cold"] = """
make it {by} warmer {in}
turn up the (heat|heating|temperature) {in} {by}
turn the (heat|heating|temperature) up {by} {in}
warm it up {by} {in}
warm up {room} {by}
{by} warmer {in}
raise the temperature {in} {by}
heat it up {by} {in}
!(it's|it is) [too|so|a bit|a little|pretty|quite|really] (cold|chilly|cool) {in}
!(it's|it is) freezing {in}
!(i'm|i am|we're|we are) [so|too|a bit|a little] cold {in}
!(i'm|i am|we're|we are) freezing {in}
!i feel (cold|chilly) {in}
!my (feet|hands|fingers|toes) are cold {in}
!i'm shivering {in}
!{room} is too (cold|cool|chilly)
!(can|could) it be {by} warmer {in}
!i'd like it {by} warmer {in}
"""
T["hot"] = """
make it {by} (cooler|colder) {in}
turn down the (heat|heating|temperature) {in} {by}
turn the (heat|heating|temperature) down {by} {in}
cool it down {by} {in}
cool down {room} {by}
{by} (cooler|colder) {in}
lower the temperature {in} {by}
!(it's|it is) [too|so|a bit|a little|pretty|quite|really] (hot|warm) {in}
!(it's|it is) (boiling|roasting|sweltering|like an oven) {in}
!(i'm|i am|we're|we are) [so|too|a bit|a little] (hot|warm) {in}
!(i'm|i am|we're|we are) (sweating|melting|boiling) {in}
!i feel (hot|too warm) {in}
!{room} is too (hot|warm)
!(can|could) it be {by} cooler {in}
!i'd like it {by} cooler {in}
"""
T["volume"] = """
set {t} volume to {v}
set the volume (of|on|for) {t} to {v}
set {t} to {v} volume
set {t} to volume {n}
turn {t} (up|down) to {v}
turn the volume (of|on) {t} (up|down|) to {v}
put the volume (of|on) {t} (at|to) {v}
change the volume (of|on) {t} to {v}
{t} volume {v}
{t} volume to {v}
{t} volume at {v}
volume {v} on {t}
volume (of|on) {t} to {v}
volume to {v} (on|for) {t}
play {t} at {v} volume
adjust {t} volume to {v}
bring {t} volume (up|down|) to {v}
!i want the volume (of|on) {t} at {v}
!{t} should be at {v} volume
"""
T["volume_here"] = """
set the volume to {v} {in}
volume {v} {in}
volume to {v} {in}
turn the volume (up|down|) to {v} {in}
turn it (up|down) to {v} {in}
put the volume (at|on|to) {v} {in}
change the volume to {v} {in}
set the music {in} to {v} volume
sound to {v} {in}
set the sound level to {v} {in}
music at {v} volume {in}
make the volume {v} {in}
"""
T["louder"] = """
turn {t} up {by}
turn up {t} {by}
make {t} {by} louder
{t} {by} louder
{t} up {by}
raise the volume (of|on) {t} {by}
increase the volume (of|on) {t} {by}
increase {t} volume {by}
turn up the volume (of|on) {t} {by}
turn the volume (of|on) {t} up {by}
{t} volume up {by}
volume up {by} on {t}
pump up {t} {by}
!i (can't|can not|can hardly|can barely) hear {t}
!{t} is too quiet
"""
T["quieter"] = """
turn {t} down {by}
turn down {t} {by}
make {t} {by} (quieter|softer)
{t} {by} (quieter|softer)
{t} down {by}
lower the volume (of|on) {t} {by}
decrease the volume (of|on) {t} {by}
decrease {t} volume {by}
reduce the volume (of|on) {t} {by}
turn down the volume (of|on) {t} {by}
turn the volume (of|on) {t} down {by}
{t} volume down {by}
volume down {by} on {t}
!{t} is too loud
!{t} is [way|much|far] too loud
!{t} is hurting my ears
"""
T["louder_here"] = """
louder {in}
{by} louder {in}
volume up {by} {in}
turn it up {by} {in}
turn up the (music|volume|sound) {by} {in}
turn the (music|volume|sound) up {by} {in}
make it {by} louder {in}
raise the volume {by} {in}
pump up the (music|volume) {in}
!i (can't|can not|can barely) hear (it|the music|anything) {in}
!(it's|it is) too quiet {in}
!the (music|sound) {in} is too quiet
"""
T["quieter_here"] = """
quieter {in}
softer {in}
{by} quieter {in}
volume down {by} {in}
turn it down {by} {in}
turn down the (music|volume|sound) {by} {in}
turn the (music|volume|sound) down {by} {in}
make it {by} (quieter|softer) {in}
lower the volume {by} {in}
not so loud {in}
!(it's|it is) [way|much|a bit] too loud {in}
!the (music|sound) {in} is too loud
!i (can't|can not) hear myself think {in}
"""
T["mute"] = """
mute {t}
mute the sound (on|of) {t}
silence {t}
turn off the sound (on|of) {t}
turn the sound off on {t}
{t} mute
{t} on mute
put {t} on mute
cut the sound on {t}
shut {t} up
hush {t}
!i don't want to hear {t}
"""
T["unmute"] = """
unmute {t}
turn the sound back on (on|for) {t}
turn on the sound (on|of) {t}
{t} unmute
{t} sound back on
give {t} its sound back
take {t} off mute
bring back the sound (on|of) {t}
un mute {t}
take the mute off {t}
take {t} off silent
put the sound back on on {t}
let me hear {t} again
restore the sound (on|of) {t}
"""
T["mute_here"] = """
mute {in}
mute it {in}
mute the (music|sound|volume) {in}
silence {in}
turn the sound off {in}
sound off {in}
"""
T["unmute_here"] = """
unmute {in}
unmute it {in}
unmute the (music|sound) {in}
turn the sound back on {in}
sound back on {in}
"""
T["pause"] = """
pause {t}
pause the (music|playback|song|sound) on {t}
stop {t} for (now|a moment|a minute|a second)
hold {t}
{t} pause
put {t} on pause
halt {t}
stop playing on {t}
freeze {t}
stop the music on {t}
"""
T["pause_here"] = """
pause {in}
pause the (music|song|playback|movie|show|video|podcast|radio) {in}
pause it {in}
stop the music {in}
stop playing {in}
hold the music {in}
hold on pause the (music|song|movie) {in}
music off {in}
halt playback {in}
stop the (song|movie|show|podcast|radio) {in}
put the (music|movie|show) on pause {in}
!i need a moment pause the music {in}
"""
T["resume"] = """
resume {t}
unpause {t}
resume playback on {t}
continue {t}
continue playing on {t}
{t} resume
{t} play
let {t} play [on]
carry on with {t}
keep playing on {t}
start {t} playing again
"""
T["resume_here"] = """
resume {in}
unpause {in}
continue {in}
play {in}
keep playing {in}
resume the (music|song|playback|movie|show|video|podcast|radio) {in}
continue (the|with the) (music|song|movie|show|podcast) {in}
continue playing {in}
carry on playing {in}
music back on {in}
go on with the (music|movie|show) {in}
start the music again {in}
un pause it {in}
!you can (continue|go on|carry on) with the (music|movie) {in}
"""
T["next"] = """
next (song|track|one|title) on {t}
skip (the|this) (song|track) on {t}
skip on {t}
{t} next [song|track]
skip to the next (song|track) on {t}
play the next (song|track|one) on {t}
go to the next (song|track|episode|station) on {t}
{t} skip
"""
T["next_here"] = """
next {in}
next (song|track|title|one|episode) {in}
skip {in}
skip (this|the|that) (song|track|one|title) {in}
skip to the next (song|track|one) {in}
play the next (song|track|one|episode) {in}
go to the next (song|track|station) {in}
skip ahead {in}
!i (don't|do not) like this (song|one|track) {in}
!(i'm|i am) tired of this song {in}
!not this (song|one) {in}
!give me another song {in}
!something else next (song|track) {in}
"""
T["previous"] = """
previous (song|track|one|title) on {t}
go back (to the previous|one|to the last) (song|track) on {t}
{t} previous [song|track]
play the (previous|last) (song|track) [again] on {t}
go back on {t}
{t} back one (song|track)
"""
T["previous_here"] = """
previous {in}
previous (song|track|title|one|episode) {in}
go back (to the previous|one|a) (song|track) {in}
play (the|that) (previous|last) (song|track) again {in}
last song again {in}
back to the (previous|last) (song|track) {in}
skip back {in}
!i liked the last song play it again {in}
!play that one again the one before {in}
"""
T["play"] = """
play {q} {on}
play (some|a bit of|a little) {q} {on}
put on {q} {on}
put {q} on {on}
start [playing] {q} {on}
let me hear {q} {on}
stream {q} {on}
listen to {q} {on}
search for {q} and play it {on}
find {q} and play it {on}
throw on {q} {on}
have {q} playing {on}
!i (want|would like) to (hear|listen to) {q} {on}
!i'd like to hear {q} {on}
!i'm in the mood for {q} {on}
!i feel like {q} {on}
!let's (hear|listen to) {q} {on}
!(can|could) (i|we) (hear|listen to|have) {q} {on}
!how about (some |){q} {on}
play a (little|little bit of|touch of) {q} {on}
play me (some|a little) {q} {on}
give me (some|a little) {q} {on}
i need some {q} {on}
let's play (some|) {q} {on}
"""
T["play_class"] = """
play the {m} {q} {on}
play {m} {q} {on}
play {q} the {m} {on}
put on the {m} {q} {on}
put the {m} {q} on {on}
start the {m} {q} {on}
stream the {m} {q} {on}
!i (want|would like) to (hear|listen to|watch) the {m} {q} {on}
!i'd like to hear the {m} {q} {on}
!let's have the {m} {q} {on}
!(can|could) (i|we|you) (hear|have|put on|play) the {m} {q} {on}
"""
T["play_playlist"] = """
play (my|the) {q} playlist {on}
put on (my|the) {q} playlist {on}
start (my|the) {q} playlist {on}
play (my|the) playlist {q} {on}
shuffle (my|the) {q} playlist {on}
!i want to hear (my|the) {q} playlist {on}
!let's have the {q} playlist {on}
put (my|the) {q} playlist on shuffle {on}
play a mix of my {q} playlist {on}
listen to (my|the) {q} playlist {on}
start playing (my|the) {q} playlist {on}
"""
T["play_artist"] = """
play (something|songs|music|a song|tracks|anything) by {q} {on}
play the artist {q} {on}
play [the] band {q} {on}
put on (something|some music|songs) by {q} {on}
!i want to (hear|listen to) (something|songs|music) by {q} {on}
!let's (hear|have) (something|some music) by {q} {on}
!(have you got|do you have) anything by {q} play it {on}
play the (group|singer|musician|orchestra) {q} {on}
play (group|singer|artist|musician) {q} {on}
put on the (band|group|singer|artist) {q} {on}
!i want to hear the (band|group|singer) {q} {on}
play me (something|some music|songs) by {q} {on}
stream (something|music) by {q} {on}
"""
T["play_track"] = """
play the song {q} {on}
play the track {q} {on}
play the title {q} {on}
put on the song {q} {on}
play me the song {q} {on}
!i want to hear the song {q} {on}
!(can|could) you play the song called {q} {on}
"""
T["play_album"] = """
play the album {q} {on}
put on the album {q} {on}
play the record {q} {on}
start the album {q} {on}
!let's (hear|listen to) the album {q} {on}
!i want to hear the whole album {q} {on}
"""
T["play_movie"] = """
play the (movie|film) {q} {on}
put on the (movie|film) {q} {on}
start the (movie|film) {q} {on}
show the (movie|film) {q} {on}
!let's watch the (movie|film) {q} {on}
!i want to (watch|see) the (movie|film) {q} {on}
"""
T["play_show"] = """
play the (show|series|tv show) {q} {on}
put on the (show|series|tv show) {q} {on}
play an episode of the (show|series) {q} {on}
!let's watch the (show|series|tv show) {q} {on}
!i want to watch the (show|series) {q} {on}
"""
T["play_podcast"] = """
play the podcast {q} {on}
play the {q} podcast {on}
put on the {q} podcast {on}
start the podcast {q} {on}
play the latest episode of the podcast {q} {on}
!i want to (hear|listen to) the podcast {q} {on}
!let's hear the {q} podcast {on}
"""
T["vacuum"] = """
start {t}
start {t} cleaning
turn on {t}
have {t} (clean|start|run|vacuum)
let {t} (clean|run|out|loose)
send {t} out
run {t}
get {t} (going|started|to work|cleaning)
{t} start
{t} clean
{t} go
tell {t} to (clean|start|vacuum|get going|get to work)
set {t} off
!{t} should (clean|start|vacuum)
!i want {t} to (clean|run|vacuum)
!let's have {t} do its thing
{t} please (clean|clean up|start)
!could {t} clean up
!it's time for {t} to work
get {t} on the job
begin cleaning with {t}
"""
T["vacuum_any"] = """
vacuum
start vacuuming
start cleaning
vacuum the (house|home|floors|floor|place|apartment|flat)
clean the (house|floors|floor|place|apartment)
hoover the (house|floors|place)
do the vacuuming
do the floors
sweep the (floor|floors|house)
!the (floor|floors|house|place) (is|are) [so|really|pretty] (dirty|dusty|filthy|a mess)
!the floors need (cleaning|vacuuming|a clean)
!(it's|it is) time to vacuum
!there is dust everywhere
"""
T["vacuum_dock"] = """
send {t} (home|back|back home|to its dock|back to its dock|to the dock|to its base|back to base|to the charger|to charge)
return {t} to (the|its) (base|dock|charger|station)
dock {t}
stop {t}
turn off {t}
bring {t} (home|back|back home)
{t} (go home|return|dock|go back|stop|home)
{t} return to base
{t} back to (the|its) (base|dock)
tell {t} to (go home|stop|go back|return to base|dock|charge)
park {t}
have {t} (go home|return|stop|go charge)
!{t} can go (home|back|charge)
!{t} should (stop|go home|go back to its dock)
!{t} has done enough
!that's enough cleaning {t}
recall {t}
{t} come back
call {t} back
stop {t} and send it home
"""
T["vacuum_area"] = """
vacuum {room}
clean {room}
clean up {room}
hoover {room}
sweep {room}
vacuum the floor {in}
clean the floor {in}
clean the floors {in}
do the floor {in}
send {vac} to {room}
have {vac} (clean|vacuum|do) {room}
tell {vac} to (clean|vacuum|do) {room}
get {vac} to (clean|do|vacuum) {room}
{vac} clean {room}
run {vac} {in}
let {vac} clean {room}
give {room} a (clean|vacuum|sweep)
!{room} (needs|could use) (vacuuming|a clean|a cleaning|a sweep)
!{room} is [so|really] (dirty|dusty|filthy|a mess)
!the floor {in} is [so|really|] (dirty|dusty|filthy|sticky)
!there (are|is) (crumbs|dirt|dust|sand|cat hair|dog hair|glitter|flour|cereal) [all over|on] the floor {in}
!i (spilled|dropped) (flour|sugar|cereal|crumbs|coffee beans|sand|rice) {in}
!somebody made a mess {in}
!i want {room} vacuumed
"""
T["mow"] = """
start {t}
mow (the lawn|the grass|the yard|the garden)
cut the grass
start mowing
start mowing the (lawn|grass)
have {t} (mow|cut|do) the (lawn|grass)
send {t} out
let {t} (mow|out|loose|start)
get {t} (going|started|mowing|to work)
{t} start
{t} start mowing
{t} mow the lawn
tell {t} to (mow|start|mow the lawn)
run {t}
!the (grass|lawn) is [getting|too|so] (long|high)
!the (grass|lawn) needs (mowing|cutting|a cut|a trim)
!(it's|it is) time to mow the lawn
"""
T["mow_dock"] = """
send {t} (home|back|back home|to its dock|back to its dock|to its base|to the charger)
stop mowing
stop {t}
dock {t}
return {t} to (the|its) (dock|base|station)
bring {t} (back|in|home|back in)
{t} (go home|return|dock|stop|go back)
tell {t} to (stop|go home|dock|go back)
park {t}
stop mowing the (lawn|grass)
!(it's|it is) raining bring {t} in
!{t} can go (home|back)
!{t} should stop
"""
T["list_add"] = """
add {i} to {l}
put {i} on {l}
put {i} down on {l}
add {i} on {l}
write {i} on {l}
write down {i} on {l}
note {i} on {l}
{l} add {i}
add to {l} {i}
include {i} (on|in) {l}
stick {i} on {l}
!i need {i} on {l}
!{i} (goes|belongs) on {l}
!(can|could) {i} go on {l}
!{l} needs {i}
!don't let me forget {i} put it on {l}
"""
T["shop_add"] = """
!(we|i) need {i}
!(we|i) need to buy {i}
!(we're|we are|i'm|i am) (out of|running out of|running low on|low on) {i}
!(we've|we have) run out of {i}
!there is no {i} left
!there's no more {i}
!(we|i) (have|'ve) no {i} left
!remember to buy {i}
!remind me to buy {i}
!(we|i) should (buy|get|pick up) {i}
!the last of the {i} is gone
!don't forget (to buy |){i}
"""
T["list_done"] = """
(check|tick|cross) off {i} (on|from) {l}
(check|tick|cross) {i} off {l}
mark {i} as (done|complete|completed|finished) on {l}
complete {i} on {l}
mark {i} (done|complete) on {l}
{i} is done on {l}
{l} {i} is done
!i (got|bought|have) {i} (check|tick|cross) it off {l}
!i (did|finished|completed) {i} check it off {l}
!{i} on {l} is done
"""
T["list_remove"] = """
remove {i} from {l}
take {i} off {l}
delete {i} from {l}
take {i} from {l}
get {i} off {l}
drop {i} from {l}
erase {i} (from|on) {l}
{l} remove {i}
!i don't need {i} on {l} anymore
!(we|i) don't need {i} take it off {l}
!{i} can come off {l}
!{i} doesn't need to be on {l}
"""
T["timer"] = """
set a timer for {d}
set a {d_adj} timer
start a timer for {d}
start a {d_adj} timer
timer for {d}
timer {d}
{d_adj} timer
{d} timer
set the timer (for|to) {d}
set timer {d}
set timer for {d}
create a timer for {d}
give me a {d_adj} timer
give me {d}
count down {d}
count down from {d}
make a timer for {d}
start a countdown (of|for) {d}
put {d} on the (clock|timer)
time {d} for me
time me for {d}
begin a {d_adj} countdown
!i (want|need) a timer for {d}
!i need a {d_adj} timer
!i'd like a {d_adj} timer
!let me know in {d}
!let me know when {d} (is|are) up
!tell me when {d} (have passed|is over|are over|are up|is up)
!(beep|ring|ping|alert me|call me) in {d}
!how about a {d_adj} timer
!new timer {d}
!wake me [up] in {d}
!remind me in {d}
!i need {d} on the clock
!give me {d} for this
alarm in {d}
!set an alarm for {d} from now
start a new timer for {d}
set another timer for {d}
another timer for {d}
set up a {d_adj} timer
run a timer for {d}
"""
T["timer_named"] = """
set a {tn} timer for {d}
set a timer for {d} (called|named) {tn}
set a {d_adj} {tn} timer
set a {d_adj} timer for the {tn}
set a {d_adj} timer (called|named) {tn}
start a {tn} timer for {d}
start a {d_adj} {tn} timer
start a timer called {tn} for {d}
start a {d_adj} timer for the {tn}
{tn} timer {d}
{tn} timer for {d}
{d} {tn} timer
{d} timer for the {tn}
{d_adj} timer (called|named) {tn}
timer for the {tn} {d}
create a {tn} timer for {d}
!i need a {tn} timer for {d}
!the {tn} needs {d} set a timer
!the {tn} takes {d} start a timer
!new {tn} timer {d}
start a new {tn} timer for {d}
set another {tn} timer for {d}
set up a {tn} timer for {d}
begin a {tn} timer of {d}
put on a {tn} timer for {d}
make a {d_adj} {tn} timer
another {tn} timer {d}
a {tn} timer for {d} please
{tn} {d} timer
!i want a {d_adj} {tn} timer
!time the {tn} for {d}
!the {tn} will take {d}
"""
T["remind"] = """
remind me in {d} to {r}
remind me to {r} in {d}
in {d} remind me to {r}
!let me know in {d} to {r}
!tell me to {r} in {d}
!tell me in {d} to {r}
!i (need|have) to {r} in {d} remind me
!don't let me forget to {r} in {d}
give me a reminder in {d} to {r}
set a reminder to {r} in {d}
set a reminder in {d} to {r}
!wake me up in {d} to {r}
!ping me in {d} to {r}
!remember to tell me to {r} in {d}
"""
T["delayed"] = """
{cmd} in {d}
in {d} {cmd}
{d} from now {cmd}
wait {d} then {cmd}
wait {d} and then {cmd}
after {d} {cmd}
{cmd} after {d}
{cmd} {d} from now
"""
T["timer_cancel"] = """
cancel {x}
stop {x}
end {x}
delete {x}
kill {x}
remove {x}
clear {x}
turn off {x}
get rid of {x}
forget {x}
abort {x}
{x} cancel
!(i|we) don't need {x} (anymore|any more|any longer)
!never mind {x}
!scrap {x}
"""
T["timer_cancel_all"] = """
cancel all [the|my|of the|of my] timers
stop all [the|my] timers
clear all [the|my] timers
delete (every timer|all timers|all my timers)
cancel every timer
kill all the timers
get rid of all [my|the] timers
remove all timers
no more timers
end all timers
turn off all [the|my] timers
!i don't need any timers anymore
"""
T["timer_add"] = """
add {d} to {x}
give {x} {d} more
give {x} another {d}
extend {x} by {d}
increase {x} by {d}
make {x} {d} longer
put {d} more on {x}
put another {d} on {x}
{d} more (on|for|to) {x}
another {d} (on|for) {x}
lengthen {x} by {d}
prolong {x} by {d}
{x} plus {d}
!{x} needs {d} more
!i need {d} more on {x}
!{x} needs another {d}
increase {x} by {d}
let {x} run {d} longer
top up {x} by {d}
make it {d} more on {x}
"""
T["timer_sub"] = """
take {d} off {x}
remove {d} from {x}
subtract {d} from {x}
decrease {x} by {d}
reduce {x} by {d}
shorten {x} by {d}
make {x} {d} shorter
cut {x} by {d}
cut {d} off {x}
{d} less (on|for) {x}
take {d} from {x}
{x} minus {d}
knock {d} off {x}
!{x} can be {d} shorter
"""
T["timer_pause"] = """
pause {x}
hold {x}
freeze {x}
stop {x} for a (moment|minute|second|bit)
put {x} on (hold|pause)
suspend {x}
halt {x} for now
{x} pause
hold {x} for a (moment|second|minute)
"""
T["timer_resume"] = """
resume {x}
unpause {x}
continue {x}
restart {x} where it was
start {x} again
let {x} (continue|run|go on)
keep {x} going
carry on with {x}
{x} (resume|continue)
un pause {x}
"""
T["timer_status"] = """
!how (long|much time|much longer) (is left|is there left|does it have|do i have) on {x}
!how much time is left on {x}
!how much longer (on|for) {x}
!how long is left on {x}
!how (many minutes|much time) (is|are|does|do) {x} (have left|still have)
!when (is|will|does) {x} (done|be done|end|finish|up|go off|over|ring)
!what's (the status of|left on|happening with) {x}
!what is left on {x}
!time left on {x}
!is {x} (done|finished|up|over) [yet|soon]
!check {x}
!status of {x}
!how's {x} doing
!tell me how much time {x} has left
!is {x} still (running|going)
"""
T["timer_status_any"] = """
!(are|do) (any|there any) timers (running|going|set)
!do i have any timers [running|going]
!(what|which) timers (are running|do i have|are set|are going|are active)
!how many timers (are running|do i have|are there)
!list (my|the|all) timers
!tell me (about|) my timers
!how (are|is) my timers doing
!is there a timer (running|going)
!how much time (is|do i have) left
!how much longer
!how long (left|is left)
"""
T["broadcast"] = """
broadcast {b}
announce {b}
announce that {b}
broadcast that {b}
tell everyone {b}
tell everyone that {b}
tell everybody {b}
tell everybody that {b}
tell (the family|the whole house|the house|the kids|all of them|all rooms) {b}
let everyone know {b}
let everyone know that {b}
let everybody know that {b}
let (the kids|the whole house|the others|the family) know {b}
make an announcement {b}
make an announcement that {b}
say in every room {b}
say {b} (everywhere|in every room|in all rooms|to everyone|on all speakers)
shout {b} to the whole house
send a message to everyone {b}
send the message {b} to everyone
pass on to everyone that {b}
!everyone should know that {b}
!i want everyone to know {b}
send everyone the message that {b}
send the message that {b}
say {b} on all speakers
message everyone {b}
let them all know {b}
spread the word {b}
call out {b}
!everybody needs to know that {b}
!everyone needs to know {b}
!the others should hear that {b}
!i want to tell everyone {b}
!can you tell everyone {b}
give everyone the message {b}
deliver the message {b} to everybody
"""

T["bright_bare"] = """
dim {room} to {v}
dim {room} down to {v}
brighten {room} to {v}
set {room} to {v} brightness
set {room} brightness to {v}
set the brightness {in} to {v}
set the brightness of {room} to {v}
{room} brightness {v}
{room} at {v} brightness
make {room} {v} bright
change the brightness {in} to {v}
adjust {room} brightness to {v}
turn the brightness {in} (up|down|) to {v}
!i want {room} at {v} brightness
"""
T["color_bare"] = """
make {room} {c}
turn {room} {c}
light {room} in {c}
change {room} to {c}
set {room} to {c}
paint {room} {c}
bathe {room} in {c}
{c} light {in}
give me {c} light {in}
!i want {c} light {in}
!i'd like {room} in {c}
"""
T["rel_bare_up"] = """
make it {by} brighter {in}
{by} brighter {in}
brighten {room} {by}
brighten up {room} {by}
increase the brightness {in} {by}
turn up the brightness {in} {by}
more light {in}
turn the brightness up {by} {in}
!(can|could) it be {by} brighter {in}
!it should be {by} brighter {in}
!it's not bright enough {in}
!it's too dim {in}
"""
T["rel_bare_down"] = """
make it {by} (dimmer|darker) {in}
{by} (dimmer|darker) {in}
dim {room} {by}
decrease the brightness {in} {by}
turn down the brightness {in} {by}
less light {in}
turn the brightness down {by} {in}
!(can|could) it be {by} (dimmer|darker) {in}
!it should be {by} (dimmer|darker) {in}
"""
T["room_off"] = """
turn off {room}
shut down {room}
shut off {room}
switch off {room}
switch {room} off
turn {room} off
power down {room}
{room} off
everything off {in}
all off {in}
shut everything down {in}
turn it all off {in}
kill everything {in}
!i'm leaving {room} turn everything off
!(we are|we're|i'm|i am) done {in} turn everything off
"""
T["scene_more"] = """
!i want {t} mode
!put the house in {t} mode
!let's get {t} going
"""
T["done_any"] = """
i (got|bought|have) {i}
i (have|'ve) (got|bought) {i}
check off {i}
tick off {i}
cross off {i}
mark {i} as (done|complete|bought)
{i} is (done|checked|taken care of)
i already (got|bought) {i}
!i (got|bought) {i} (check|tick|cross) it off
!i (have|'ve) (got|bought) {i} check it off [my list|the list]
!{i} is done
!(we've|we have) got {i} now
"""
T["did_any"] = """
!i (did|finished) {i}
!i'm done with {i}
!{i} is done
!{i} is (finished|taken care of) check it off
check off {i}
tick off {i}
mark {i} as (done|complete|finished)
!mark {i} off [my list|the list]
!i have finished {i}
!i just finished {i}
"""
T["remove_any"] = """
remove {i} from [my|the|our] list
take {i} off [my|the|our] list
delete {i} [from the list]
(scratch|strike) {i} [from the list]
!(we|i) don't need {i} anymore
!(we|i) don't need {i} after all
!forget about {i} on the list
!no need for {i} anymore take it off
"""
T["timer_of"] = """
!how's {x} doing
!how (long|much longer|much time) (for|does) {x} (have|need|take)
!how (long|much longer) until {x} is (done|ready|finished)
!how much longer for {x}
!how long does {x} have [left]
!when is {x} (ready|done|finished)
!when will {x} be (ready|done)
!is {x} (ready|done) [yet]
!how many minutes for {x}
!time left for {x}
!how long has {x} got
!check on {x}
!what about {x}
"""
T["fan_level"] = """
set {t} to {v}
set {t} to {v} speed
turn {t} to {v}
put {t} on {v}
run {t} on {v}
{t} on {v}
{t} to {v}
{t} {v}
{t} speed {v}
switch {t} to {v} [speed]
!i want {t} on {v}
!{t} should be on {v}
"""
T["q_count"] = """
!how many lights are on {in}
!how many lights (do i|do we) have on {in}
!how many lamps are on {in}
!(count|tell me the number of) lights that are on {in}
!how many lights are still on {in}
"""
T["q_none"] = """
!what's the {x} [in here|right now]
!what is the {x} [in here|right now]
!how high is the {x}
!tell me the {x}
!what does the {x} sensor say
!check the {x} [for me]
"""
# -- questions ----------------------------------------------------------------
T["q_on"] = """
!(is|are) {t} on
!(is|are) {t} (still|currently|already) on
!(is|are) {t} (turned|switched) on
!(is|are) {t} on or off
!did (i|we|anyone|someone|he|she) leave {t} on
!have (i|we) left {t} on
!did i forget to turn off {t}
!did (i|we) (turn|switch) off {t}
!what's {t} doing
!what is the (state|status) of {t}
!what state (is|are) {t} in
!(can|could) you (check|see|tell me) (if|whether) {t} (is|are) on
!check (if|whether) {t} (is|are) on
!tell me (if|whether) {t} (is|are) on
!i wonder if {t} (is|are) on
!{t} on or off
!(is|are) {t} running
!(is|are) {t} off
!{t} status
!do you know if {t} (is|are) (on|off)
"""
T["q_open"] = """
!(is|are) {t} open
!(is|are) {t} (still|currently) open
!(is|are) {t} (closed|shut)
!(is|are) {t} open or closed
!did (i|we|someone|anyone) leave {t} open
!did (i|we) (close|shut) {t}
!have (i|we) closed {t}
!(can|could) you (check|tell me) (if|whether) {t} (is|are) (open|closed|shut)
!check (if|whether) {t} (is|are) (open|closed)
!what's the (state|status) of {t}
!i wonder if {t} (is|are) open
!{t} open or closed
!tell me (if|whether) {t} (is|are) open
"""
T["q_locked"] = """
!is {t} locked
!is {t} (still|currently) (locked|unlocked)
!is {t} unlocked
!is {t} locked or unlocked
!did (i|we|anyone) lock {t}
!have (i|we) locked {t}
!did (i|we) forget to lock {t}
!(can|could) you (check|tell me) (if|whether) {t} is locked
!check (if|whether) {t} is locked
!is {t} (secure|safe)
!what's the (state|status) of {t}
!tell me (if|whether) {t} is locked
!did i leave {t} unlocked
"""
T["q_bright"] = """
!how bright (is|are) {t}
!what's the brightness of {t}
!what brightness (is|are) {t} [set to|at|on]
!what is {t} set to
!what percent (is|are) {t} (at|on)
!how (high|strong) (is|are) {t}
!tell me the brightness of {t}
!at what (level|percentage) (is|are) {t}
"""
T["q_color"] = """
!what colo(r|ur) (is|are) {t}
!which colo(r|ur) (is|are) {t} [set to|in|on]
!what's the color of {t}
!what colo(r|ur) does {t} have
!tell me the color of {t}
!what colo(r|ur) did i set {t} to
"""
T["q_position"] = """
!how far open (is|are) {t}
!how far (is|are) {t} open
!what position (is|are) {t} (in|at)
!what's the position of {t}
!how (open|closed) (is|are) {t}
!at what (position|percentage) (is|are) {t}
"""
T["q_fan"] = """
!how fast is {t} [running|going|spinning]
!what speed is {t} (on|at|running at)
!what's the speed of {t}
!at what speed is {t}
!how (high|strong) is {t} [running|set]
"""
T["q_set"] = """
!what is {t} set to
!what's {t} set to
!what temperature is {t} (set to|on|at)
!what's the (set point|setpoint|target|target temperature) (of|on|for) {t}
!how high is {t} set
!what did i set {t} to
!what is {t} at
"""
T["q_temp"] = """
!how (warm|hot|cold) is it {in}
!what's the temperature {in}
!what is the temperature {in}
!what temperature is it {in}
!how many degrees is it {in}
!how (warm|cold|hot) is {room}
!tell me the temperature {in}
!what's the temp {in}
!temperature {in}
!is it (warm|cold|hot) {in}
!what does the thermometer say {in}
"""
T["q_sensor"] = """
!what's {t}
!what is {t}
!what does {t} (say|show|read)
!how (high|much) is {t}
!tell me {t}
!read {t}
!what's the (reading|value) (of|on) {t}
!check {t}
!give me the (value|reading) of {t}
!{t}
"""
T["q_humidity"] = """
!how humid is it {in}
!what's the humidity {in}
!what is the humidity {in}
!how (damp|moist) is it {in}
!tell me the humidity {in}
!humidity {in}
!how high is the humidity {in}
!is it humid {in}
"""
T["q_playing"] = """
!what's playing {on}
!what is playing {on}
!what (song|track) is (this|playing|that) {on}
!what's (this|that) song {on}
!what's on {on}
!which song is playing {on}
!what am i listening to {on}
!what are we listening to {on}
!what's the name of this song {on}
!name this song {on}
!who's playing {on}
"""
T["q_volume"] = """
!how loud is {t}
!what's the volume (of|on) {t}
!what volume is {t} (at|on)
!what is the volume (of|on) {t}
!tell me the volume of {t}
!how high is the volume (of|on) {t}
!at what volume is {t}
"""
T["q_which_on"] = """
!(which|what) lights are on {in}
!what lights are [still|currently] on {in}
!are any lights on {in}
!are there any lights on {in}
!is (any|a|there a) light [still] on {in}
!did (i|we|anyone) leave any lights on {in}
!tell me (which|what) lights are on {in}
!list the lights that are on {in}
!which lamps are on {in}
!is there light {in}
!are the lights on {in}
!are the lights off {in}
!are all [the] lights off {in}
!is the light on {in}
!did i turn off the lights {in}
!are there lights on {in}
!which ones are on {in}
!what's lit {in}
"""
T["q_which_open"] = """
!(which|what) (windows|blinds|doors|covers) are open {in}
!are any (windows|doors) open {in}
!is (any|a) window open {in}
!did (i|we) leave any windows open {in}
!is anything open {in}
!tell me what is open {in}
"""
T["q_which_locked"] = """
!(which|what) doors are (unlocked|open)
!are (all|all the) doors locked
!is everything locked [up]
!are any doors unlocked
!is the house locked [up]
!did i lock (everything|all the doors)
!is any door unlocked
"""
T["q_area"] = """
!what's on {in}
!what is on {in}
!is anything on {in}
!is (anything|something) still (on|running) {in}
!did i leave anything on {in}
!is everything off {in}
!what's running {in}
!is there anything on {in}
!what devices are on {in}
!what did i leave on {in}
"""
T["q_list"] = """
!what's on {l}
!what is on {l}
!what do i have on {l}
!what's on {l} (right now|at the moment|so far|today)
!read [me] {l}
!read out {l}
!tell me what's on {l}
!what does {l} say
!show me {l}
!list {l}
!is there anything on {l}
!what's still on {l}
!(anything|something) on {l}
!give me {l}
"""
T["q_list_shop"] = """
!what do (i|we) (need|have) to (buy|get)
!what do (i|we) need from the (store|shop|supermarket)
!what should (i|we) (buy|get|pick up)
!what are we out of
"""
T["q_list_has"] = """
!is {i} on {l}
!did i put {i} on {l}
!do (i|we) have {i} on {l}
!is {i} already on {l}
!have (i|we) got {i} on {l}
"""
T["q_list_count"] = """
!how many (things|items|entries) are on {l}
!how long is {l}
!how much is on {l}
"""
T["q_vacuum"] = """
!what's {t} doing
!what is {t} (doing|up to)
!where is {t}
!is {t} (cleaning|running|working|busy)
!is {t} still (cleaning|running|going)
!is {t} (home|docked|charging|in its dock|back)
!what's the status of {t}
!has {t} (finished|returned)
!how's {t} doing
"""
T["q_mower"] = """
!what's {t} doing
!what is {t} (doing|up to)
!is {t} (mowing|running|working|out)
!is {t} still (mowing|running|out|going)
!is {t} (home|docked|charging|back)
!what's the status of {t}
"""
T["q_binary"] = """
!is {t} {bw}
!what's the (state|status) of {t}
!what does {t} say
!check {t}
!is {t} {bw} right now
!(can|could) you (check|tell me) (if|whether) {t} is {bw}
!tell me (if|whether) {t} is {bw}
"""
T["q_motion"] = """
!is (anyone|anybody|someone|somebody) {in}
!is there (anyone|anybody|movement|motion|somebody) {in}
!has there been (any|) motion {in}
!do you see (anyone|any motion) {in}
"""
T["q_leak"] = """
!is there a (leak|water leak) {in}
!is (anything|something) leaking {in}
!is there water on the floor {in}
!is it dry {in}
"""
T["q_time"] = """
!what time is it
!what's the time
!what is the time
!(can|could) you tell me the time
!tell me the time
!time please
!what time is it (now|right now|please)
!do you (know|have) the time
!the time please
!how late is it
!what's the clock say
!what does the clock say
!what's the current time
!give me the time
!got the time
!is it late
"""
T["q_weekday"] = """
!what day is it
!what day is it today
!what day of the week is it
!which day is (it|today)
!what's today
!what is today
!which weekday is (it|today)
!is it (monday|tuesday|wednesday|thursday|friday|saturday|sunday) today
!tell me what day it is
"""
T["q_date"] = """
!what's the date
!what is the date
!what's today's date
!what is today's date
!what date is it [today]
!tell me the date
!which date is (it|today)
!what's the date today
!today's date
!what day of the month is it
"""
T["q_month"] = """
!what month is it
!which month (is it|are we in)
!what's the month
!what month are we in
"""
T["q_year"] = """
!what year is it
!which year (is it|are we in)
!what year are we in
"""

# -- follow-ups ---------------------------------------------------------------
T["and_too"] = """
!and {t} too
!and {t}
!and {t} as well
!{t} too
!{t} as well
!also {t}
!same for {t}
!the same for {t}
!do the same (for|with|in|to) {t}
!now {t}
!and now {t}
!same thing (for|with) {t}
!what about {t}
!how about {t}
!oh and {t}
!and {t} please
!{t} also
!plus {t}
!then {t}
!likewise {t}
!and also {t}
!repeat that for {t}
"""
T["it_on"] = """
!(turn|switch) (it|that|them) [back] on [again|please|then]
!on again
!(turn|switch) (it|that|them) on
!back on
!put (it|them) [back] on
!okay turn (it|them) on
!turn (it|them) on then
!on please
!(it|that|they) should be on
!actually (turn|leave|switch) (it|them) on
"""
T["it_off"] = """
!(turn|switch) (it|that|them) [back] off [again|please|then]
!off again
!(turn|switch) (it|that|them) off
!back off
!shut (it|them) off
!okay turn (it|them) off
!turn (it|them) off then
!off please
!kill (it|them)
!actually (turn|switch) (it|them) off
!(it|they) can go off again
"""
T["it_open"] = """
!open (it|them) [again|up|please|then]
!back up
!open again
!open up again
!raise (it|them) again
"""
T["it_close"] = """
!close (it|them) [again|please|then]
!shut (it|them)
!close again
!back down
!lower (it|them) again
!okay close (it|them)
"""
T["it_lock"] = """
!lock it [again|please|then]
!lock it back up
!then lock it
!okay lock it
!well lock it then
"""
T["it_unlock"] = """
!unlock it [again|please|then]
!then unlock it
!open it [up]
!okay unlock it
"""
T["it_bright"] = """
!make (it|that|them) {v}
!set (it|that|them) to {v}
!no {v}
!(dim|turn|put|bring) (it|them) [down] to {v}
!actually {v}
!{v} instead
!make that {v}
!rather {v}
!{v} please
!{v}
!and (dim|set) (it|them) to {v}
!let's say {v}
!change (it|that) to {v}
!no make (it|that) {v}
!to {v}
!go (down|up) to {v}
!{v} is enough
!maybe {v}
!try {v}
!hmm {v}
!better {v}
"""
T["it_color"] = """
!make (it|that|them) {c}
!set (it|that|them) to {c}
!turn (it|them) {c}
!no {c}
!actually {c}
!{c} instead
!make that {c}
!rather {c}
!{c} please
!{c}
!and make (it|them) {c}
!change (it|them) to {c}
!in {c}
!try {c}
!how about {c}
!now {c}
!can (it|they) be {c}
!maybe {c}
!hmm {c}
!better {c}
"""
T["it_brighter"] = """
!{by} brighter
!brighter
!more
!{by} more
!make (it|that|them) {by} brighter
!turn (it|them) up {by}
!still too dark
!not bright enough
!not enough
!up {by}
!brighter please
!a notch brighter
!can (it|they) be {by} brighter
!too dark
!that's too dim
"""
T["it_dimmer"] = """
!{by} (dimmer|darker)
!(dimmer|darker)
!less
!{by} less
!make (it|that|them) {by} (dimmer|darker)
!turn (it|them) down {by}
!dim (it|them) {by}
!still too bright
!too bright
!that's too bright
!that's too much
!down {by}
!(dimmer|darker) please
!can (it|they) be {by} (dimmer|darker)
"""
T["it_warmer"] = """
!{by} warmer
!warmer
!{by} more
!make it {by} warmer
!up {by}
!turn it up {by}
!{by} higher
!higher
!still too cold
!still cold
!one more degree
!(i'm|i am) still cold
!not warm enough
"""
T["it_cooler"] = """
!{by} cooler
!cooler
!{by} less
!make it {by} cooler
!down {by}
!turn it down {by}
!{by} lower
!lower
!still too (hot|warm)
!too hot
!that's too (hot|warm)
!one degree less
!(i'm|i am) still hot
"""
T["it_louder"] = """
!{by} louder
!louder
!more
!{by} more
!turn it up {by}
!up {by}
!still too quiet
!make it {by} louder
!not loud enough
!volume up
"""
T["it_quieter"] = """
!{by} quieter
!quieter
!{by} less
!turn it down {by}
!down {by}
!still too loud
!too loud
!that's too loud
!make it {by} quieter
!softer
!volume down
"""
T["it_faster"] = """
!{by} faster
!faster
!turn it up {by}
!up {by}
!still too slow
!speed it up {by}
!make it {by} faster
!more
"""
T["it_slower"] = """
!{by} slower
!slower
!turn it down {by}
!down {by}
!too fast
!still too fast
!slow it down {by}
!make it {by} slower
"""
T["it_opener"] = """
!{by} more
!{by} further
!open it {by} more
!up {by}
!higher
!{by} wider
!a touch higher
"""
T["it_closer"] = """
!{by} less
!close it {by} more
!down {by}
!lower
!{by} lower
"""
T["undo"] = """
!undo that
!undo
!undo (it|this|that please|the last one|the last command)
!(revert|reverse|cancel) that
!take that back
!change it back
!put it back
!put it back (to|the way) (how it was|it was)
!go back to what it was
!that was wrong undo it
!no undo that
!i didn't (mean|want) that undo it
!oops undo that
!set it back (to what it was|how it was|)
!no that was wrong change it back
!never mind change it back
!back to (how|what) it was
!wrong one change it back
!i changed my mind undo that
"""
T["ans_one"] = """
!{t}
!{t} please
!the {p} one
!{p}
!{p} please
!i mean {t}
!i meant {t}
!the {p} one please
!{t} i think
!take {t}
!{t} of course
!oh {t}
!um {t}
!that would be {t}
!the one (called|named) {p}
"""
T["ans_first"] = """
!the first one
!the first
!the former
!first
!first one please
"""
T["ans_last"] = """
!the last one
!the second one
!the latter
!the second
!second one please
"""
T["ans_both"] = """
!both
!both of them
!both please
!all of them
!all
!the two of them
!both of those
"""
T["ans_room"] = """
!{room}
!in {room}
!{room} please
!the one in {room}
!the {room} one
!i mean {room}
!in {room} please
!{room} of course
!for {room}
"""
T["ans_never"] = """
!never mind
!forget it
!none of them
!neither
!none
!no never mind
!cancel
!let it be
!it doesn't matter
"""
T["thanks"] = """
!thanks
!thank you
!thank you very much
!thanks a lot
!great thanks
!perfect
!perfect thank you
!great
!cool
!nice
!good job
!well done
!awesome
!cheers
!that's better
!good
!lovely
!okay thanks
!wonderful
!much better
!brilliant
!excellent
!you're the best
"""
T["hello"] = """
!hello
!hi
!hi there
!hello there
!hey
!hey there
!good day
!howdy
!greetings
!hello house
!hi hearth
!hey assistant
!are you there
!can you hear me
!hello can you hear me
!anybody home
!yo
"""
T["morning"] = """
!good morning
!morning
!good morning house
!i'm up
!good morning to you
"""
T["evening"] = """
!good evening
!evening
!good evening to you
"""
T["afternoon"] = """
!good afternoon
!good afternoon to you
"""
T["night"] = """
!good night
!night
!night night
!sleep well
!good night house
!i'm going to bed
!see you tomorrow
!nighty night
"""
T["bye"] = """
!bye
!goodbye
!bye bye
!see you
!see you later
!i'm leaving
!i'm off
!later
!that's all
!that will be all
!that's it
!i'm done
!nothing else
!no that's all
!nothing thanks
"""
T["howare"] = """
!how are you
!how are you today
!how are you doing
!how's it going
!how is it going
!how do you do
!how have you been
!how was your day
!what's up
!are you okay
!how do you feel
!you alright
"""
T["who"] = """
!who are you
!what are you
!what's your name
!what is your name
!do you have a name
!are you a robot
!are you human
!are you real
!who made you
!who built you
!where are you from
!how old are you
!who am i talking to
!introduce yourself
!are you alexa
!are you siri
!are you listening
!what language do you speak
"""
T["can"] = """
!what can you do
!what can i say
!help
!help me
!what are you good for
!how can you help [me]
!what can i ask you
!how do you work
!what do you know
!what commands do you know
!tell me what you can do
!what are your skills
!i need help
"""
T["joke"] = """
!tell me a joke
!do you know a joke
!make me laugh
!say something funny
!tell me something funny
!i want to hear a joke
!another joke
!do you know any jokes
"""
T["nevermind"] = """
!never mind
!nevermind
!forget it
!forget about it
!cancel
!stop
!stop it
!quiet
!be quiet
!shut up
!okay stop
!no
!nothing
!it's nothing
!i wasn't talking to you
!not you
!i didn't say anything
!sorry wrong one
!false alarm
!ignore that
!leave it
!skip it i mean forget it
!stop talking
!stop listening
!hush
!oh never mind
!it's fine
!drop it
!no don't
"""
T["praise"] = """
!i love you
!you are great
!you're amazing
!you're funny
!you are funny
!good girl
!good boy
!you're smart
!i like you
!you are so helpful
!you rock
!do you like me
!do you love me
!you are beautiful
!marry me
!will you be my friend
"""
T["insult"] = """
!you're stupid
!you are dumb
!you're useless
!that was wrong
!you don't understand me
!you're annoying
!i hate you
!that's not what i said
!you never listen
!this is ridiculous
!you got that wrong
"""
T["feel"] = """
!i'm bored
!i'm tired
!i'm sad
!i'm happy
!i'm hungry
!i'm sick
!i had a bad day
!i'm lonely
!i can't sleep
!i'm home
!i'm back
!what a day
!i'm so stressed
!i have a headache
!it's my birthday
!i'm thirsty
"""
T["chat_misc"] = """
!okay
!ok
!yes
!yeah
!sure
!hm
!hmm
!uh
!right
!i see
!really
!oh
!wow
!of course
!what do you think
!what's your favorite color
!what is the meaning of life
!sing me a song
!sing a song
!tell me a story
!tell me something
!tell me a fun fact
!flip a coin
!roll a dice
!merry christmas
!happy new year
!happy birthday
!bless you
!excuse me
!sorry
!i'm sorry
!can i ask you something
!repeat that
!what did you say
!say that again
!testing one two three
!test
!do you dream
!do you sleep
!what are you doing
!what's new
!i have a question
!who is your favorite singer
!can you sing
!are you smart
!knock knock
!surprise me
!go on
!not now
!maybe later
!wait
!hold on
!one moment
!i don't know
!you know what
!let me think
!interesting
!that's interesting
!cool story
!as you wish
!i'm just kidding
!are you awake
!wake up
"""
# -- what a home cannot do ----------------------------------------------------
T["dont"] = """
!don't (turn|switch) (on|off) {t}
!no don't (turn|switch) {t} (on|off)
!please don't touch {t}
!do not (turn|switch) {t} (on|off)
!don't change {t}
!you don't have to (turn|switch) {t} (on|off)
"""
T["cannot"] = """
!what's the weather [like] [today|tomorrow|outside|this weekend|like tomorrow]
!what will the weather be [like] [tomorrow|today|on sunday|next week]
!will it rain [today|tomorrow|later|this afternoon]
!is it (raining|snowing|sunny) [outside|right now]
!do i need an umbrella [today|tomorrow]
!what's the forecast [for tomorrow|for today|for the weekend]
!what's (in|on) the news
!read me the news
!tell me the headlines
!who won the (game|match|football|world cup|election|race|super bowl) [last night|yesterday]
!what's the score [of the game]
!who is the (president|king|queen|prime minister|mayor) [of france|of england|of japan|of the united states]
!what's the capital of (france|peru|japan|kenya|norway|canada|brazil)
!how (tall|high) is (mount everest|the eiffel tower|the moon)
!how far is (the moon|paris|it to london|the sun)
!how old is (the universe|the earth|the queen|tom hanks)
!when was (mozart|napoleon|einstein|shakespeare) born
!who (wrote|painted|invented) (hamlet|the mona lisa|the telephone|the light bulb|faust)
!what is (love|gravity|a black hole|quantum physics|photosynthesis|the meaning of life)
!explain (gravity|relativity|inflation|photosynthesis) to me
!how do you (spell|pronounce) (necessary|rhythm|onomatopoeia|worcestershire|entrepreneur)
!translate (hello|thank you|good night) (to|into) (french|spanish|german|italian|japanese)
!what's (seven|twelve|fifteen|twenty) (times|plus|minus|divided by) (six|nine|four|three)
!how much is (twelve|fifty|a hundred) (dollars|euros|pounds) in (euros|dollars|yen)
!convert (ten|five|a hundred) (miles|pounds|feet|gallons) (to|into) (kilometers|kilos|meters|liters)
!call (my mother|mom|dad|the police|a taxi|my sister|the doctor|911|john|my wife|the office)
!phone (my mother|mom|dad|my brother|a friend|the school)
!text (my wife|my husband|mom|john|my boss|lisa) [that i am late|i'm on my way]
!send (an email|a message|a text|a mail) to (my boss|mom|john|the landlord|my teacher)
!read (my|me my) (email|emails|messages|mail)
!do i have any (new |)(email|emails|messages|mail|missed calls)
!check my email
!order (a pizza|me a pizza|some food|sushi|chinese food|groceries|more coffee|pizza)
!buy (a new phone|more coffee online|some stocks|tickets|me a present|shoes on the internet)
!book (a flight|a table|a taxi|a hotel|tickets) [for tonight|to paris|for two|for me]
!get me (a taxi|an uber|a coffee|a beer|something to eat)
!make me (a sandwich|a coffee|breakfast|rich|a cup of tea|dinner)
!cook (dinner|something|an egg|lunch)
!(feed|walk|brush|wash) the (cat|dog|hamster|baby|fish)
!do (my homework|the dishes|the laundry|my taxes|the ironing)
!(wash|fold|iron) my (clothes|shirt|car|pants)
!clean (my shoes|my glasses|the windows|the toilet)
!set an alarm for (seven|six thirty|eight|tomorrow morning|seven a m|five o'clock)
!wake me [up] at (seven|six thirty|eight o'clock|half past six)
!what's on my calendar [today|tomorrow]
!what are my appointments [today|tomorrow]
!add (a meeting|an appointment|dinner) to my calendar
!when is my next (meeting|appointment)
!where is my (phone|wallet|car|cat|husband|dog)
!find my (phone|keys|glasses|wallet)
!where are my (keys|glasses|shoes|kids)
!how's (the traffic|traffic on the way to work|the stock market)
!what's the (stock price|share price) of (apple|google|tesla|microsoft)
!how long (does it take to drive|is the drive) to (work|paris|the airport)
!navigate (home|to work|to the airport)
!give me directions to (the station|the hospital|work)
!when does the (bus|train|store|pharmacy|bank) (leave|come|open|close)
!what's for (dinner|lunch|breakfast)
!give me a recipe for (pancakes|lasagna|soup|bread)
!how do i (make|bake|cook) (pancakes|bread|a cake|rice|an omelette)
!what should i (wear|cook|eat|watch|read|do) [today|tonight]
!open (the browser|netflix on my phone|google|youtube on my laptop|facebook)
!search the (internet|web) for (cheap flights|a plumber|cat videos)
!google (cute cats|the nearest pharmacy|how to tie a tie)
!take a (picture|photo|selfie|screenshot)
!record (a video|a voice memo|this)
!play chess with me
!play a game with me
!what's my (name|address|phone number|password|age)
!who is at the door
!what did i (say|do|eat) yesterday
!remember that (my name is tom|i parked on level two|i like tea)
!what's the wifi password
!update yourself
!restart the router remotely from the cloud
!drive the car to the front
!start the (car|engine)
!(mow|paint|build) the (fence|roof|house)
!turn back time
!make it stop raining
!make the (sun|moon) (shine|go away|come out)
!pay (the rent|my bills|the electricity bill)
!transfer (ten dollars|fifty euros|some money) to (my sister|john|my savings)
!how many calories (are|does) (in an apple|in a banana|a pizza have)
!what's the best (restaurant|movie|phone) [in town]
!sell my (stocks|car|house)
!(read|tell) me (a story|the bible|a poem|my horoscope|today's paper)
!what's (trending|happening in the world|going on in town)
!is the (store|shop|bank|pharmacy|library) open [today|now]
!who (sings|wrote|directed) (this song|yesterday|star wars|the matrix)
!(reserve|get me) a table (at|in) (the italian place|a restaurant) [tonight]
!what's the population of (china|berlin|canada|texas)
!define (serendipity|entropy|love)
!what does (ubiquitous|ephemeral|chat) mean
!spell (banana|house|mississippi)
!what's the square root of (two|nine|sixteen|a hundred)
!what time is it in (tokyo|new york|london|sydney)
!how do i get to (the airport|the station|main street)
!ask (my wife|john|the neighbor) if (he|she) is coming
!(invite|call) (the neighbors|my friends) [over]
!message (mom|my brother|the team)
!post (a picture|this) on (facebook|instagram)
!download (the app|a movie|an update)
!(install|delete) the app
!(print|scan) (the document|my homework|a page)
!(charge|unlock|find) my (phone|laptop|tablet)
!(hack|open|read) the neighbor's wifi
!do a (backflip|barrel roll|dance)
!(sing|play) happy birthday on the (piano|violin)
!clean my (room|desk|car) for me
!(water|feed) the (neighbors|dog|birds)
!what's the (speed of light|boiling point of water|tallest building)
!who (discovered|invented) (america|penicillin|the wheel|electricity)
!tell me about (the romans|dinosaurs|france|albert einstein)
!when is (easter|thanksgiving|the next full moon|mother's day)
!how many days until (christmas|my birthday|summer)
!when does the sun (set|rise) [today]
!did (the mail|my package|the paper) come
!where is (the iss|my package|the nearest gas station)
!track my (package|order|flight)
!what is my (schedule|heart rate|weight|balance)
!log my (weight|lunch|workout)
!how much (money|battery) do i have [on my phone]
!(invite|ask|bring) (people|my friends|the family) (over|for dinner)
!download (a game|my music|the photos|a song)
!(text|message) (dad|my sister|my friend|the boss)
!stream a movie to my phone
"""

WRAPS = """
(can|could|would|will) you {x}
(can|could|would) you please {x}
could you possibly {x}
please {x}
{x} please
{x} thanks
{x} thank you
{x} for me
{x} for me please
{x} now
{x} right now
{x} would you
{x} will you
{x} if you (can|could|would|don't mind)
i (want|need) you to {x}
i'd like you to {x}
i would like you to {x}
hey {x}
hey could you {x}
okay {x}
ok {x}
okay now {x}
so {x}
well {x}
um {x}
uh {x}
er {x}
um could you {x}
uh can you {x} please
hey um {x}
{x} um please
go ahead and {x}
just {x}
quickly {x}
now {x}
then {x}
and {x}
oh and {x}
alright {x}
right {x}
listen {x}
computer {x}
house {x}
assistant please {x}
hey house {x}
be (so kind|a dear|nice) and {x}
(hey|okay|ok|) hearth {x}
hearth please {x}
(hey|okay|) (jarvis|nabu|mycroft|assistant) {x}
alexa {x}
(yo|yeah|yes|oh) {x}
i'd appreciate it if you could {x}
you know what {x}
i forgot to say {x}
quick {x}
be so good as to {x}
would you be so kind as to {x}
would you kindly {x}
do me a favor and {x}
i was wondering if you could {x}
is it possible to {x}
(could|can) (someone|somebody) {x}
you can {x} [now]
you should {x}
you may {x}
it would be great if you could {x}
it'd be nice if you could {x}
i think you should {x}
i guess you can {x}
let's {x}
why don't you {x}
time to {x}
try to {x}
remember to {x}
{x} quickly
{x} when you (can|get a chance|have a moment)
{x} as soon as you can
{x} again
{x} okay
{x} buddy
{x} my friend
{x} darling
"""


# -- reading the lines --------------------------------------------------------

def _parse(s):
    """AST: list of str | ("slot", name) | ("alt", [ast, ...])"""
    def seq(i, end):
        out, alts, buf = [], [], ""
        while i < len(s):
            ch = s[i]
            if ch in end:
                break
            if ch in "([":
                if buf:
                    out.append(buf)
                    buf = ""
                inner, i = seq(i + 1, ")" if ch == "(" else "]")
                if ch == "[":
                    inner = inner + [[]]
                out.append(("alt", inner))
            elif ch == "{":
                if buf:
                    out.append(buf)
                    buf = ""
                j = s.index("}", i)
                out.append(("slot", s[i + 1:j]))
                i = j
            elif ch == "|":
                if buf:
                    out.append(buf)
                    buf = ""
                alts.append(out)
                out = []
            else:
                buf += ch
            i += 1
        if buf:
            out.append(buf)
        alts.append(out)
        return alts, i

    alts, i = seq(0, "")
    return ("alt", alts) if len(alts) > 1 else alts[0]


class Line:
    __slots__ = ("text", "_ast", "plain", "held", "grown")

    def __init__(self, key, text, grown=False):
        self.plain = text.startswith("!")
        self.text = text.lstrip("!")
        self._ast = None
        self.grown = grown
        self.held = held_out(key, text)

    @property
    def ast(self):
        if self._ast is None:
            self._ast = _parse(self.text)
        return self._ast

    def say(self, rng, fill):
        def walk(n, out):
            if isinstance(n, str):
                out.append(n)
            elif isinstance(n, list):
                for x in n:
                    walk(x, out)
            elif n[0] == "slot":
                out.append(fill[n[1]](rng) if callable(fill[n[1]]) else fill[n[1]])
            else:
                walk(rng.choice(n[1]), out)
            return out
        return re.sub(r"\s+", " ", "".join(walk(self.ast, []))).strip()

    def forms(self, limit=400):
        """Every wording of the line, slots as they are written; None when there are too many."""
        def walk(n):
            if isinstance(n, str):
                return [n]
            if isinstance(n, list):
                out = [""]
                for x in n:
                    out = [a + b for a in out for b in walk(x)]
                    if len(out) > limit:
                        raise OverflowError
                return out
            if n[0] == "slot":
                return ["{%s}" % n[1]]
            return [y for x in n[1] for y in walk(x)]
        try:
            return {" ".join(x.split()) for x in walk(self.ast)}
        except OverflowError:
            return None


def held_out(key, text):
    """One line in twelve, by its hash alone, is for the held-out set."""
    return hashlib.sha256(("%s\n%s" % (key, text)).encode()).digest()[0] < 21


def _lines():
    out = {}
    more, grown = wordings.MORE, wordings.grow()
    split = lambda s: [x.strip() for x in s.strip().splitlines() if x.strip()]
    for key, text in {**T, "wrap": WRAPS}.items():
        ls = [Line(key, x) for x in split(text)]
        if len(ls) < 5 or sum(not x.held for x in ls) < 2:      # a key keeps at least two lines to learn from, and a short one loses none
            for x in ls:
                x.held = False
        seen = {x.text for x in ls}
        new = [Line(key, x) for x in dict.fromkeys(split(more.get(key, "")))] + [Line(key, x, True) for x in dict.fromkeys(grown.get(key, ()))]
        # what one line keeps out of training, no other line brings back
        forms = lambda xs: {f for x in xs for f in x.forms() or {x.text}}
        known = forms(x for x in ls if not x.held)
        for x in ls + new:
            if x.held and known & forms([x]):
                x.held = False
        kept = forms(x for x in ls + new if x.held)
        out[key] = ls + [x for x in new if x.text not in seen and (x.held or not kept & forms([x]))]
    return out


LINES = _lines()
GROUPS = {}      # (key, held): lines of the one sort and of the other
for _k, _v in LINES.items():
    for _h in (False, True):
        GROUPS[_k, _h] = ([x for x in _v if x.held == _h and not x.grown], [x for x in _v if x.held == _h and x.grown])
GROWN = 0.4      # how often a verb put into an opening is drawn, where a key has both


def pick(rng, key, held=False, need=None):
    """A line of @key; held: only lines that training never sees (None if there is none)."""
    a, b = GROUPS[key, held]
    ls = a if a and (not b or rng.random() >= GROWN) else b
    for _ in range(12):
        if not ls:
            return None
        x = rng.choice(ls)
        if need is None or need(x):
            return x
    ls = [x for x in a + b if need(x)]
    return rng.choice(ls) if ls else None


if __name__ == "__main__":
    n = sum(len(v) for v in LINES.values())
    print(len(LINES), "keys", n, "lines,", sum(x.grown for v in LINES.values() for x in v), "of them grown,", sum(x.held for v in LINES.values() for x in v), "held out")
