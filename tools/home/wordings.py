# SPDX-License-Identifier: MIT
"""Verbs put into the openings that people use: more template lines for templates.py.

One line holds one verb in one opening, so that a line kept out of training is
made of a verb and an opening that training met apart from each other.
"""

# base, -ing, participle, and what comes after the thing (or before it, where it may stand on both sides: ~)
VERBS = {
    "on": """turn turning turned ~on; switch switching switched ~on; flip flipping flipped ~on; flick flicking flicked ~on; power powering powered ~on; power powering powered ~up; put putting put ~on; click clicking clicked ~on;
        bring bringing brought ~on; fire firing fired ~up; start starting started ~up; start starting started; activate activating activated; enable enabling enabled; snap snapping snapped ~on; get getting gotten going; boot booting booted ~up; throw throwing thrown ~on""",
    "off": """turn turning turned ~off; switch switching switched ~off; shut shutting shut ~off; flip flipping flipped ~off; flick flicking flicked ~off; power powering powered ~off; power powering powered ~down; click clicking clicked ~off;
        shut shutting shut ~down; cut cutting cut; kill killing killed; stop stopping stopped; disable disabling disabled; deactivate deactivating deactivated; snap snapping snapped ~off; cut cutting cut ~off; knock knocking knocked ~off""",
    "open": """open opening opened; open opening opened ~up; raise raising raised; lift lifting lifted; pull pulling pulled ~up; roll rolling rolled ~up; draw drawing drawn ~back; wind winding wound ~up; put putting put ~up; slide sliding slid open; push pushing pushed ~open; crank cranking cranked ~open""",
    "close": """close closing closed; shut shutting shut; lower lowering lowered; pull pulling pulled ~down; roll rolling rolled ~down; let letting let down; wind winding wound ~down; drop dropping dropped; put putting put ~down; draw drawing drawn shut; slide sliding slid shut; pull pulling pulled ~closed; close closing closed ~up""",
    "lock": "lock locking locked; lock locking locked ~up; bolt bolting bolted; secure securing secured; latch latching latched; seal sealing sealed; deadbolt deadbolting deadbolted; lock locking locked ~down",
    "unlock": "unlock unlocking unlocked; unbolt unbolting unbolted; unlatch unlatching unlatched; release releasing released; unseal unsealing unsealed; open opening opened ~up",
    "scene": "activate activating activated; start starting started; trigger triggering triggered; launch launching launched; run running run; execute executing executed; turn turning turned ~on; switch switching switched ~on; apply applying applied; enable enabling enabled; begin beginning begun; put putting put ~on; bring bringing brought ~up; engage engaging engaged",
    "pause": "pause pausing paused; halt halting halted; freeze freezing frozen; hold holding held; suspend suspending suspended; put putting put on pause; put putting put on hold",
    "resume": "resume resuming resumed; unpause unpausing unpaused; continue continuing continued; restart restarting restarted",
    "mute": "mute muting muted; silence silencing silenced; hush hushing hushed; put putting put on mute",
    "unmute": "unmute unmuting unmuted; unsilence unsilencing unsilenced; take taking taken off mute; take taking taken off silent",
    "vacuum": "start starting started; run running run; launch launching launched; send sending sent ~out; dispatch dispatching dispatched; activate activating activated; turn turning turned ~on; switch switching switched ~on; kick kicking kicked ~off; let letting let loose; put putting put to work",
    "vacuum_dock": "dock docking docked; send sending sent home; send sending sent back; recall recalling recalled; return returning returned to its base; park parking parked; call calling called back; bring bringing brought back; stop stopping stopped; order ordering ordered home; take taking taken home; send sending sent to its dock",
    "mow": "start starting started; run running run; send sending sent ~out; launch launching launched; activate activating activated; put putting put to work; let letting let out",
    "mow_dock": "dock docking docked; send sending sent home; send sending sent back; recall recalling recalled; park parking parked; call calling called back; bring bringing brought in; stop stopping stopped; return returning returned to its dock",
    "bright": "set setting set to {v}; put putting put at {v}; bring bringing brought to {v}; take taking taken to {v}; change changing changed to {v}; adjust adjusting adjusted to {v}; turn turning turned to {v}; dim dimming dimmed to {v}; brighten brightening brightened to {v}; fade fading faded to {v}; raise raising raised to {v}; lower lowering lowered to {v}; have having held at {v}; switch switching switched to {v}; keep keeping kept at {v}; move moving moved to {v}",
    "on_bright": "turn turning turned on at {v}; switch switching switched on at {v}; put putting put on at {v}; turn turning turned on to {v}",
    "color": "make making made {c}; turn turning turned {c}; set setting set to {c}; change changing changed to {c}; switch switching switched to {c}; put putting put on {c}; paint painting painted {c}; color coloring colored {c}; light lighting lit in {c}; tint tinting tinted {c}",
    "color_bright": "set setting set to {c} at {v}; make making made {c} at {v}; turn turning turned {c} at {v}; change changing changed to {c} and {v}; switch switching switched to {c} with {v} brightness; put putting put on {c} at {v}",
    "ctemp": "make making made {k}; turn turning turned {k}; set setting set to {k}; change changing changed to {k}; switch switching switched to {k}; put putting put on {k}; adjust adjusting adjusted to {k}; tune tuning tuned to {k}",
    "position": "set setting set to {v}; put putting put at {v}; move moving moved to {v}; open opening opened to {v}; close closing closed to {v}; raise raising raised to {v}; lower lowering lowered to {v}; bring bringing brought to {v}; pull pulling pulled to {v}; adjust adjusting adjusted to {v}; roll rolling rolled to {v}; open opening opened {v}",
    "position_half": "open opening opened halfway; close closing closed halfway; raise raising raised half way; lower lowering lowered half way; put putting put in the middle; pull pulling pulled halfway down; set setting set to half",
    "fan": "set setting set to {v}; put putting put on {v}; run running run at {v}; turn turning turned to {v}; change changing changed to {v}; bring bringing brought to {v}; adjust adjusting adjusted to {v}; keep keeping kept at {v}; spin spinning spun at {v}; take taking taken to {v}",
    "temp": "set setting set to {v}; put putting put at {v}; turn turning turned to {v}; change changing changed to {v}; adjust adjusting adjusted to {v}; bring bringing brought to {v}; keep keeping kept at {v}; move moving moved to {v}; raise raising raised to {v}; lower lowering lowered to {v}; take taking taken to {v}; heat heating heated to {v}",
    "volume": "set setting set to {v} volume; put putting put at {v} volume; turn turning turned to volume {n}; bring bringing brought to {v} volume; keep keeping kept at {v} volume; adjust adjusting adjusted to volume {n}; take taking taken to {v} volume",
    "brighter": "turn turning turned ~up {by}; bring bringing brought ~up {by}; make making made {by} brighter; push pushing pushed ~up {by}; brighten brightening brightened ~up {by}; raise raising raised {by}; bump bumping bumped ~up {by}; take taking taken up {by}; get getting gotten {by} brighter; crank cranking cranked ~up {by}; increase increasing increased {by}",
    "dimmer": "turn turning turned ~down {by}; bring bringing brought ~down {by}; make making made {by} dimmer; make making made {by} darker; dim dimming dimmed ~down {by}; lower lowering lowered {by}; take taking taken down {by}; tone toning toned ~down {by}; reduce reducing reduced {by}; get getting gotten {by} darker; drop dropping dropped {by}",
    "louder": "turn turning turned ~up {by}; make making made {by} louder; crank cranking cranked ~up {by}; bring bringing brought ~up {by}; push pushing pushed ~up {by}; get getting gotten {by} louder; pump pumping pumped ~up {by}",
    "quieter": "turn turning turned ~down {by}; make making made {by} quieter; make making made {by} softer; bring bringing brought ~down {by}; take taking taken down {by}; get getting gotten {by} quieter; tone toning toned ~down {by}",
    "warmer": "turn turning turned ~up {by}; set setting set {by} higher; make making made {by} warmer; bring bringing brought ~up {by}; raise raising raised {by}; bump bumping bumped ~up {by}; push pushing pushed ~up {by}; take taking taken up {by}",
    "cooler": "turn turning turned ~down {by}; set setting set {by} lower; make making made {by} cooler; bring bringing brought ~down {by}; lower lowering lowered {by}; take taking taken down {by}; drop dropping dropped {by}; reduce reducing reduced {by}",
    "faster": "turn turning turned ~up {by}; make making made {by} faster; speed speeding sped ~up {by}; get getting gotten {by} faster; push pushing pushed ~up {by}; bring bringing brought ~up {by}",
    "slower": "turn turning turned ~down {by}; make making made {by} slower; slow slowing slowed ~down {by}; get getting gotten {by} slower; bring bringing brought ~down {by}; take taking taken down {by}",
    "opener": "open opening opened {by} more; open opening opened {by} further; raise raising raised {by}; move moving moved up {by}; bring bringing brought up {by}; pull pulling pulled up {by}; get getting gotten {by} wider",
    "closer": "close closing closed {by} more; close closing closed {by} further; lower lowering lowered {by}; move moving moved down {by}; bring bringing brought down {by}; pull pulling pulled down {by}",
    "bright_max": "set setting set to full brightness; turn turning turned all the way up; make making made as bright as it gets; put putting put on full; bring bringing brought to maximum brightness; take taking taken up to full; set setting set to the maximum; crank cranking cranked all the way up",
    "bright_min": "set setting set to minimum brightness; turn turning turned all the way down; make making made as dim as it gets; put putting put on its lowest setting; bring bringing brought down to the minimum; dim dimming dimmed all the way down; set setting set to the lowest brightness",
    "fan_max": "set setting set to full speed; turn turning turned all the way up; run running run at top speed; put putting put on full power; bring bringing brought to maximum speed; put putting put on the highest setting",
    "fan_level": "set setting set to {v}; put putting put on {v}; run running run on {v}; turn turning turned to {v}; switch switching switched to {v} speed; keep keeping kept on {v}; change changing changed to {v}",
    "timer_cancel": "cancel canceling cancelled; stop stopping stopped; end ending ended; delete deleting deleted; remove removing removed; clear clearing cleared; turn turning turned ~off; kill killing killed; abort aborting aborted; drop dropping dropped; switch switching switched ~off; dismiss dismissing dismissed",
    "timer_pause": "pause pausing paused; hold holding held; freeze freezing frozen; suspend suspending suspended; put putting put on hold; put putting put on pause",
    "timer_resume": "resume resuming resumed; unpause unpausing unpaused; continue continuing continued; take taking taken off hold; restart restarting restarted where it was",
    "timer_add": "extend extending extended by {d}; increase increasing increased by {d}; make making made {d} longer; lengthen lengthening lengthened by {d}; prolong prolonging prolonged by {d}; keep keeping kept running {d} longer",
    "timer_sub": "shorten shortening shortened by {d}; reduce reducing reduced by {d}; make making made {d} shorter; cut cutting cut by {d}; decrease decreasing decreased by {d}; trim trimming trimmed by {d}",
    "list_add": "add adding added to {l}; put putting put on {l}; write writing written on {l}; include including included on {l}; note noting noted on {l}; stick sticking stuck on {l}; throw throwing thrown on {l}; place placing placed on {l}; jot jotting jotted down on {l}; enter entering entered on {l}",
    "list_remove": "remove removing removed from {l}; take taking taken off {l}; delete deleting deleted from {l}; erase erasing erased from {l}; drop dropping dropped from {l}; get getting gotten off {l}; clear clearing cleared from {l}; strike striking struck from {l}",
    "list_done": "check checking checked off on {l}; tick ticking ticked off on {l}; mark marking marked as done on {l}; mark marking marked as completed on {l}; cross crossing crossed off {l}; check checking checked off {l}; tick ticking ticked off {l}",
}
THING = {k: "{x}" if k.startswith("timer_") else "{i}" if k.startswith("list_") else "{t}" for k in VERBS}

# @b: turn on the lamp; @g: turning on the lamp; @p: turned on; @t: the lamp
OPENINGS = """
@b
would you mind @g
do you mind @g
how about @g
what about @g
any chance of @g
could i get you to @b
may i ask you to @b
could we @b
can we @b
i want to @b
i'd like to @b
i need to @b
we need to @b
we should @b
i have to @b
help me @b
it's time to @b
it would be nice to @b
it would be good to @b
it'd help to @b
you'd better @b
better @b
can't you @b
won't you @b
why not @b
make sure to @b
be sure to @b
don't forget to @b
see if you can @b
go and @b
let me @b
let us @b
i asked you to @b
would it be okay to @b
i was going to @b but you do it
i want @t @p
i need @t @p
i'd like @t @p
i would love to have @t @p
i'd prefer @t @p
we want @t @p
get @t @p
have @t @p
see that (@t is|@t gets) @p
make sure @t gets @p
make sure that @t is @p
@t needs to be @p
@t should be @p
@t has to be @p
@t must be @p
@t ought to be @p
@t wants to be @p
@t can be @p now
can @t be @p
could @t be @p
could @t please be @p
can i have @t @p
can i get @t @p
could you have @t @p
would you get @t @p
i'd rather have @t @p
i think @t should be @p
please get @t @p
it would be great to have @t @p
i'd be happy to see @t @p
let's get @t @p
let's have @t @p
what i want is @t @p
"""


def grow():
    """{key: [line, ...]}"""
    out = {}
    openings = [x.strip() for x in OPENINGS.strip().splitlines()]
    for key, verbs in VERBS.items():
        t = THING[key]
        lines = out.setdefault(key, [])
        for v in verbs.split(";"):
            base, ing, part, *rest = v.split()
            rest = " ".join(rest)
            both = rest.startswith("~")
            rest = rest.lstrip("~")
            particle, _, tail = rest.partition(" ")

            def orders(w):
                out = ["%s %s %s" % (w, t, rest)]
                if both:
                    out.append("%s %s %s %s" % (w, particle, t, tail))
                return [" ".join(x.split()) for x in out]
            if base == "have":
                part = "held"
            for o in openings:
                if o == "@b":
                    lines += orders(base)
                    continue
                if "@b" in o or "@g" in o:
                    os = orders(base if "@b" in o else ing)
                    s = o.replace("@b", "@g").replace("@g", os[0] if len(os) == 1 else "(%s)" % "|".join(os))
                else:
                    s = o.replace("@t", t).replace("@p", (part + " " + rest).strip())
                lines.append("!" + " ".join(s.split()))
    return out


MORE = {}
MORE["light_on"] = """
get some light going {in}
bring some light {in}
put a light on {in}
get the lights on {in}
make some light {in}
give us (some|a bit of) light {in}
hit the lights {in}
throw some light {in}
brighten the place up {in}
flood the place with light {in}
!(it's|it is) like a cave {in}
!we're sitting in the dark {in}
!(i'm|i am) stumbling around in the dark {in}
!i can't find anything {in} it's too dark
!i can't read {in} without light
!there's not enough light {in}
!who turned out the lights {in}
!the sun went down and it's dark {in}
!my eyes hurt from the dark {in}
!it's black as night {in}
!could you do something about the dark {in}
!i walked into the dark {in}
!i'd like some light {in}
!i want (some|the) light {in}
!is it possible to have light {in}
!it would be nice to see something {in}
!how about some light {in}
!let's have some light {in}
!any chance of some light {in}
"""
MORE["light_off"] = """
turn out the lights {in}
put the lights out {in}
put out the lights {in}
get the lights off {in}
shut the lights {in}
no lights {in} please
douse the lights {in}
leave it dark {in}
!i want no light {in}
!i'd like it dark {in}
!i'd like it (pitch black|completely dark) {in}
!could we have darkness {in}
!we can do without the lights {in}
!(i'm|i am) going to sleep so lights off {in}
!the lights {in} are not needed (anymore|any more|now)
!the lights {in} can go out
!let's have it dark {in}
!there's too much light on {in} turn it all off
!nobody needs the lights {in}
"""
MORE["too_bright"] = """
!there is too much light {in}
!the lights {in} are too strong
!the light {in} hurts my eyes
!my eyes hurt from the light {in}
!i have to squint {in}
!it could be less bright {in}
!why is it so bright {in}
!(it's|it is) way too bright for me {in}
!i need sunglasses {in}
"""
MORE["stuffy"] = """
get the air moving {in}
give me (some|a bit of) air {in}
!i can't breathe {in}
!the air is (stale|thick|so still) {in}
!some fresh air would be nice {in}
!i could use (a breeze|some air) {in}
!i want a breeze {in}
!there isn't any air {in}
!it smells {in} get the air moving
!the air {in} is not moving
"""
MORE["temp_room"] = """
get it to {v} {in}
bring the temperature (up|down|) to {v} {in}
raise the temperature to {v} {in}
lower the temperature to {v} {in}
take the temperature to {v} {in}
put the thermostat {in} to {v}
keep it at {v} {in}
hold the temperature at {v} {in}
adjust the temperature {in} to {v}
turn the thermostat to {v} {in}
turn the heat (up|down) to {v} {in}
set it to {v} {in}
let it be {v} {in}
warm it up to {v} {in}
cool it down to {v} {in}
!i need it to be {v} {in}
!i'd prefer {v} {in}
!the temperature {in} should be {v}
!i like it at {v} {in}
!it would be nice to have {v} {in}
!could it be {v} {in}
!how about {v} {in}
!we want {v} {in}
!{v} would be good {in}
"""
MORE["cold"] = """
get it {by} warmer {in}
bring the temperature up {by} {in}
bump the (heat|heating|temperature) up {by} {in}
give me (some|more) heat {in}
increase the (temperature|heat) {in} {by}
a little more heat {in}
!i want it {by} warmer {in}
!it could be {by} warmer {in}
!it should be {by} warmer {in}
!it's not warm enough {in}
!i'm shaking with cold {in}
!i need a blanket {in} it's so cold
!(i'm|we're) turning to ice {in}
!i can see my breath {in}
!it's like a fridge {in}
!my nose is cold {in}
!can we have it {by} warmer {in}
!let's make it {by} warmer {in}
!brr {in}
"""
MORE["hot"] = """
get it {by} cooler {in}
bring the temperature down {by} {in}
bump the (heat|heating|temperature) down {by} {in}
decrease the (temperature|heat) {in} {by}
less heat {in}
!i want it {by} (cooler|colder) {in}
!it could be {by} cooler {in}
!it should be {by} cooler {in}
!it's not cool enough {in}
!i'm dying of heat {in}
!it's like a sauna {in}
!i can't stand the heat {in}
!i'm dripping with sweat {in}
!we're roasting {in}
!can we have it {by} cooler {in}
!let's make it {by} cooler {in}
!too much heat {in}
"""
MORE["volume_here"] = """
bring the volume (up|down|) to {v} {in}
adjust the volume to {v} {in}
get the volume to {v} {in}
turn the (sound|music) (up|down|) to {v} {in}
take the volume to {v} {in}
raise the volume to {v} {in}
lower the volume to {v} {in}
keep the volume at {v} {in}
!i want the volume at {v} {in}
!i'd like the volume (at|to be) {v} {in}
!the volume should be {v} {in}
!the music should be at {v} {in}
!let's have the volume at {v} {in}
!how about {v} volume {in}
"""
MORE["louder_here"] = """
crank (it|the music|the volume) up {by} {in}
increase the volume {by} {in}
bring the volume up {by} {in}
bump the (volume|music|sound) up {by} {in}
more volume {in}
push the volume up {by} {in}
!i want it {by} louder {in}
!it could be {by} louder {in}
!can we have it {by} louder {in}
!it's not loud enough {in}
!i (can't|can barely|can hardly) hear a thing {in}
!the volume {in} is too low
!let's have it {by} louder {in}
!speak up {in} the music is too quiet
"""
MORE["quieter_here"] = """
keep it down {in}
tone it down {by} {in}
decrease the volume {by} {in}
reduce the volume {by} {in}
bring the volume down {by} {in}
bump the (volume|music|sound) down {by} {in}
less volume {in}
!i want it {by} quieter {in}
!it could be {by} quieter {in}
!can we have it {by} quieter {in}
!it's hurting my ears {in}
!the volume {in} is too high
!the neighbors will complain {in} turn it down
!let's have it {by} quieter {in}
!this is deafening {in}
!i'm on the phone turn it down {in}
"""
MORE["mute_here"] = """
kill the sound {in}
cut the (sound|volume|audio) {in}
no sound {in}
put it on mute {in}
silence (it|the music) {in}
hush the music {in}
turn off the (sound|audio) {in}
!i want silence {in}
!i need quiet {in} mute it
!i don't want to hear it {in}
"""
MORE["unmute_here"] = """
bring the sound back {in}
give me the sound back {in}
turn the (audio|volume) back on {in}
take it off mute {in}
un mute it {in}
restore the sound {in}
put the sound back on {in}
!i want to hear it again {in}
!i want the sound back {in}
!let me hear it again {in}
"""
MORE["pause_here"] = """
freeze the (movie|show|video) {in}
put it on hold {in}
stop it for a (moment|second) {in}
pause what's playing {in}
halt the (music|movie|show) {in}
hold it there {in}
suspend playback {in}
stop playback {in}
take a break with the (music|movie) {in}
!i want to pause the (movie|music|show) {in}
!can we pause it {in}
!can we pause the (movie|show|music) {in}
!the phone is ringing pause it {in}
!one moment pause the (music|movie|show) {in}
!would you mind pausing the (music|movie|show) {in}
!i want the music paused {in}
"""
MORE["resume_here"] = """
play it again from where it was {in}
take it off pause {in}
pick up where we left off {in}
get the (music|movie|show) going again {in}
let it play {in}
let the (music|movie|show) go on {in}
start it again {in}
start the (movie|show|song|podcast) again {in}
restart the (music|playback) {in}
put the music back on {in}
!i'm back play the (movie|show|music) {in}
!let's continue the (movie|show|music) {in}
!let's keep watching {in}
!i want to keep listening {in}
!would you mind resuming the (music|movie|show) {in}
!can we go on with the (movie|show) {in}
"""
MORE["next"] = """
jump to the next (song|track|one) on {t}
move on to the next (song|track|one) on {t}
forward one (song|track) on {t}
change the (song|track) on {t}
give me the next (song|track) on {t}
skip ahead on {t}
skip this one on {t}
skip what's playing on {t}
have {t} play the next (song|track|one)
have {t} skip this (song|track)
make {t} skip (this|the) (song|track)
make {t} play the next (song|track|one)
tell {t} to skip (this|the) (song|track)
tell {t} to play the next (song|track)
!i want the next (song|track) on {t}
!i don't like this (song|one|track) on {t}
!would you mind skipping this (song|track) on {t}
!let's hear the next (song|track) on {t}
!let's skip this one on {t}
!can we have the next (song|track) on {t}
!{t} should play the next (song|track)
!how about the next (song|track) on {t}
"""
MORE["next_here"] = """
jump to the next (song|track|one) {in}
move on to the next (song|track|one) {in}
change the (song|track) {in}
forward one (song|track) {in}
give me the next (song|track|one) {in}
bring on the next (song|track|one) {in}
skip what's playing {in}
skip over this (song|one|track) {in}
on to the next one {in}
!i want the next (song|track|one) {in}
!i want to hear the next (song|track|one) {in}
!i'm sick of this (song|one|track) {in}
!i've heard this (song|one) enough {in}
!i hate this (song|one|track) {in}
!this (song|track|one) is (boring|terrible|awful) {in} skip it
!let's hear the next (song|track|one) {in}
!let's skip this (song|track|one) {in}
!can we skip this (song|track|one) {in}
!would you mind skipping this (song|track|one) {in}
!play something else next (song|track) {in}
!how about the next (song|track|one) {in}
!enough of this (song|one|track) {in}
"""
MORE["previous"] = """
jump back to the (last|previous) (song|track) on {t}
return to the (last|previous) (song|track) on {t}
rewind to the (last|previous) (song|track) on {t}
back one (song|track) on {t}
skip back on {t}
give me the (last|previous) (song|track) again on {t}
have {t} play the (last|previous) (song|track) [again]
make {t} go back (one|a) (song|track)
tell {t} to go back (one|a) (song|track)
tell {t} to play the (last|previous) (song|track) again
!i want the (last|previous) (song|track) again on {t}
!i liked the last (song|one|track) on {t} go back
!let's hear the (last|previous) (song|track) again on {t}
!can we have the (last|previous) (song|track) again on {t}
!would you mind going back (one|a) (song|track) on {t}
"""
MORE["previous_here"] = """
jump back to the (last|previous) (song|track|one) {in}
return to the (last|previous) (song|track|one) {in}
rewind to the (last|previous) (song|track) {in}
back one (song|track) {in}
one (song|track) back {in}
give me the (last|previous) (song|track|one) again {in}
play what was on before {in}
play the (song|track|one) before this {in}
the (last|previous) (song|track|one) again {in}
!i want the (last|previous) (song|track|one) again {in}
!i want to hear the (last|previous) (song|track|one) again {in}
!that last (song|one|track) was good go back {in}
!let's hear the (last|previous) (song|track|one) again {in}
!can we go back (one|a) (song|track) {in}
!can we hear the (last|previous) (song|track) again {in}
!would you mind going back (one|a) (song|track) {in}
!wait go back (one|a) (song|track) {in}
"""
MORE["play"] = """
get {q} going {on}
get me {q} {on}
get {q} playing {on}
turn on {q} {on}
bring up {q} {on}
pull up {q} {on}
spin {q} {on}
cue up {q} {on}
queue up {q} {on}
fire up {q} {on}
start up {q} {on}
begin playing {q} {on}
keep me company with {q} {on}
treat me to {q} {on}
let {q} play {on}
!i want you to play {q} {on}
!i want {q} {on}
!i'd love to (hear|listen to) {q} {on}
!i'd like you to play {q} {on}
!i would love (some|) {q} {on}
!i could do with {q} {on}
!we want to (hear|listen to) {q} {on}
!we'd like (to hear|) {q} {on}
!would you mind playing {q} {on}
!would you put on {q} {on}
!what about {q} {on}
!it's time for {q} {on}
!time for {q} {on}
!let's have {q} {on}
!let's put on {q} {on}
!let's get {q} going {on}
!could we have {q} playing {on}
!why not play {q} {on}
"""
for _k, _m in (("playlist", "playlist"), ("artist", "artist|band|singer"), ("track", "song|track"), ("album", "album|record"), ("movie", "movie|film"), ("show", "show|series"), ("podcast", "podcast")):
    _see = "watch|see" if _k in ("movie", "show") else "hear|listen to"
    MORE["play_" + _k] = """
start playing the (%(m)s) {q} {on}
get the (%(m)s) {q} going {on}
bring up the (%(m)s) {q} {on}
pull up the (%(m)s) {q} {on}
turn on the (%(m)s) {q} {on}
find the (%(m)s) {q} and play it {on}
look for the (%(m)s) {q} and play it {on}
queue up the (%(m)s) {q} {on}
stream the (%(m)s) {q} {on}
give me the (%(m)s) {q} {on}
have the (%(m)s) {q} playing {on}
!i want you to play the (%(m)s) {q} {on}
!i'd like to (%(s)s) the (%(m)s) {q} {on}
!i'd love to (%(s)s) the (%(m)s) {q} {on}
!i feel like the (%(m)s) {q} {on}
!i'm in the mood for the (%(m)s) {q} {on}
!we want to (%(s)s) the (%(m)s) {q} {on}
!let's put on the (%(m)s) {q} {on}
!let's have the (%(m)s) {q} {on}
!could we (%(s)s) the (%(m)s) {q} {on}
!can i (%(s)s) the (%(m)s) {q} {on}
!would you mind playing the (%(m)s) {q} {on}
!how about the (%(m)s) {q} {on}
!what about the (%(m)s) {q} {on}
!it's time for the (%(m)s) {q} {on}
""" % {"m": _m, "s": _see}
MORE["vacuum_any"] = """
give the (house|floors|place) a (clean|once over|sweep)
run the vacuum cleaner through the house
get the floors clean
get the vacuuming done
take care of the (floors|dust|dirt)
get rid of the (dust|dirt|crumbs)
start a cleaning run
begin (cleaning|vacuuming)
do a round of (cleaning|vacuuming)
!i want (the floors|the house|the place) (cleaned|vacuumed)
!i'd like (the floors|the house) (cleaned|vacuumed)
!would you mind (vacuuming|cleaning the floors|doing the floors)
!the carpet is (dirty|dusty|full of crumbs)
!it's dusty in this house
!there is dirt all over the house
!let's get the (floors|house) (clean|cleaned)
!somebody should vacuum
!the (house|place) could use a (clean|vacuum)
"""
MORE["vacuum_area"] = """
tidy up the floor {in}
take care of the floor {in}
get the floor clean {in}
get {room} (clean|cleaned|vacuumed)
have {room} (cleaned|vacuumed|swept)
run a clean {in}
run a cleaning {in}
start cleaning {room}
start vacuuming {room}
start vacuuming {in}
begin cleaning {room}
do {room} next
make {room} clean
give the floor {in} a (clean|sweep|once over)
get rid of the (dust|dirt|crumbs) {in}
vacuum up the (crumbs|dirt|mess) {in}
clean up the (crumbs|dirt|mess) {in}
let {vac} do {room}
let {vac} loose {in}
make {vac} (clean|do|vacuum) {room}
put {vac} to work {in}
use {vac} {in}
send {vac} to clean {room}
send {vac} into {room}
start {vac} {in}
ask {vac} to (clean|do|vacuum) {room}
!i'd like {room} (cleaned|vacuumed|swept)
!i need {room} (cleaned|vacuumed|swept)
!i want the floor {in} (clean|cleaned|vacuumed)
!i want {vac} to (clean|do|vacuum) {room}
!would you mind (vacuuming|cleaning|sweeping) {room}
!how about (vacuuming|cleaning|sweeping) {room}
!let's (vacuum|clean|sweep|do) {room}
!{room} should be (cleaned|vacuumed|swept)
!{room} has to be (cleaned|vacuumed|swept)
!{room} is due for a (clean|cleaning|sweep)
!the carpet {in} is (dirty|dusty|full of crumbs)
!the kids left crumbs {in}
!the (dog|cat) made a mess {in}
!it's (dirty|dusty|filthy) {in}
!it needs (vacuuming|cleaning|a clean) {in}
!there's a mess on the floor {in}
!{vac} should (clean|do|vacuum) {room}
"""
MORE["mow"] = """
get the (lawn|grass) (mowed|mown|cut|done)
have the (lawn|grass) (mowed|mown|cut|trimmed)
trim the (lawn|grass)
do the (lawn|grass)
begin mowing
begin mowing the (lawn|grass)
take care of the (lawn|grass)
give the (lawn|grass) a (cut|trim)
start cutting the (grass|lawn)
make {t} mow
put {t} to work on the (lawn|grass)
ask {t} to mow [the lawn|the grass]
!i want the (lawn|grass) (mowed|cut|trimmed)
!i'd like the (lawn|grass) (mowed|cut|trimmed)
!would you mind (mowing|cutting) the (lawn|grass)
!how about (mowing|cutting) the (lawn|grass)
!let's (mow|cut) the (lawn|grass)
!the (lawn|grass) should be (mowed|cut)
!the (lawn|grass) could use a (cut|trim|mow)
!the (lawn|grass) is like a jungle
!{t} should (mow|start|cut the grass)
!{t} can (mow|start) now
"""
MORE["mow_dock"] = """
stop cutting the (grass|lawn)
quit mowing
end the mowing
finish mowing
no more mowing
have {t} (go home|stop|return|come in)
make {t} (go home|stop|come back)
order {t} (home|back)
ask {t} to (stop|go home|come back)
!the (lawn|grass) is short enough stop {t}
!that's enough mowing
!(it's|it is) (about|going) to rain send {t} home
!i want {t} (back|home|in its dock)
!i'd like {t} (home|back in its dock)
!{t} has done enough
!would you mind sending {t} home
"""
MORE["shop_add"] = """
!we could use {i}
!i could use {i}
!we need to get {i}
!i have to (buy|get|pick up) {i}
!we have to (buy|get|pick up) {i}
!we're nearly out of {i}
!we're almost out of {i}
!we (used|ate|drank) the last of the {i}
!i just used the last of the {i}
!i used up the {i}
!we ran out of {i}
!i ran out of {i}
!we've got no {i} left
!the {i} is (all gone|finished|empty)
!the {i} (ran|has run) out
!somebody finished the {i}
!let's (buy|get) {i}
!make sure we (buy|get) {i}
!next time at the store get {i}
!{i} is running low
!i want to buy {i}
!we'll need {i}
!get {i} next time
!please buy {i}
"""
MORE["list_add"] = """
have {i} on {l}
i'd like {i} on {l}
get {i} on {l}
make a note of {i} on {l}
put down {i} on {l}
scribble {i} on {l}
append {i} to {l}
{i} on {l} please
{i} to {l}
new item on {l} {i}
!i want {i} on {l}
!{i} should be on {l}
!{i} should go on {l}
!{i} is missing (from|on) {l}
!make sure {i} is on {l}
!make sure {i} gets on {l}
"""
MORE["remove_any"] = """
get {i} off [my|the|our] list
drop {i} from [my|the|our] list
erase {i} [from the list]
cancel {i} [on the list]
!i want {i} off the list
!{i} can come off the list
!{i} can go from the list
!(we|i) won't need {i} [after all]
!(we|i) no longer need {i}
!(we've|we have|i've) changed (our minds|my mind) about {i}
!skip {i} on the list
!leave {i} off the list
!{i} shouldn't be on the list [anymore]
!would you mind (taking|removing) {i} from the list
!let's take {i} off the list
"""
MORE["done_any"] = """
put a check next to {i}
check {i}
tick {i}
!i just (got|bought) {i}
!i've just (got|bought) {i}
!i picked up {i}
!i've picked up {i}
!we (got|bought) {i}
!i put {i} in the cart
!{i} is in the cart
!{i} is in the basket
!{i} was bought
!that's {i} done
!i found {i} so check it off
!would you mind (checking|ticking) off {i}
!let's (check|tick) off {i}
!you can (check|tick|cross) off {i}
"""
MORE["did_any"] = """
put a check next to {i}
check {i}
tick {i}
set {i} to done
!i've finished {i}
!i've done {i}
!i (did|completed) {i} already
!i already (did|finished) {i}
!i took care of {i}
!i got around to {i}
!i managed to {i}
!we (did|finished) {i}
!that's {i} done
!{i} has been done
!{i} is off my plate
!would you mind (checking|ticking) off {i}
!you can (check|tick|cross) off {i}
!let's (check|tick) off {i}
"""
MORE["timer"] = """
set me a timer for {d}
start me a timer for {d}
get a timer going for {d}
get a {d_adj} timer going
put a timer on for {d}
put on a timer for {d}
put a {d_adj} timer on
have a timer run for {d}
keep time for {d}
keep track of {d}
watch the clock for {d}
count {d} down [for me]
count {d}
begin a timer for {d}
launch a timer for {d}
launch a {d_adj} timer
kick off a {d_adj} timer
set the clock for {d}
set a countdown for {d}
set a {d_adj} countdown
set a timer that (rings|goes off|ends) in {d}
set a timer to go off in {d}
add a timer for {d}
add a {d_adj} timer
open a {d_adj} timer
let a timer run for {d}
do a {d_adj} timer
do a timer for {d}
program a timer for {d}
schedule a timer for {d}
!i'd like a timer for {d}
!i'd like you to time {d}
!i want to set a timer for {d}
!i need to set a timer for {d}
!could we have a timer for {d}
!could i get a timer for {d}
!can i get a {d_adj} timer
!can i have a timer for {d}
!let's set a timer for {d}
!let's do {d} on the timer
!would you mind setting a timer for {d}
!would you mind timing {d}
!how about setting a timer for {d}
!what about a timer for {d}
!make it a {d_adj} timer
!say something in {d}
!tell me in {d}
!notify me in {d}
!let me know after {d}
!let me know when {d} (is|are) over
!wake me after {d}
!give me a (call|shout|ping) in {d}
!give me a timer of {d}
!time's up in {d} okay
!i have {d} keep time
!ring in {d}
!make some noise in {d}
"""
MORE["timer_named"] = """
set me a {tn} timer for {d}
set the {tn} timer (for|to) {d}
set up a timer for the {tn} for {d}
get a {tn} timer going for {d}
get a {d_adj} {tn} timer going
put a timer on the {tn} for {d}
put {d} on a {tn} timer
launch a {tn} timer for {d}
launch a {d_adj} {tn} timer
kick off a {d_adj} {tn} timer
add a {tn} timer for {d}
add a {d_adj} {tn} timer
open a {tn} timer of {d}
do a {tn} timer for {d}
do a {d_adj} {tn} timer
time {d} for the {tn}
count down {d} for the {tn}
give me a {tn} timer for {d}
give me a {d_adj} {tn} timer
give me {d} for the {tn}
!i'd like a {tn} timer for {d}
!i'd like a timer for the {tn} {d}
!i want a {tn} timer of {d}
!i need {d} for the {tn}
!i need a timer called {tn} for {d}
!can i have a {tn} timer for {d}
!could i get a {d_adj} {tn} timer
!could you time the {tn} for {d}
!let's set a {tn} timer for {d}
!would you mind setting a {tn} timer for {d}
!how about a {tn} timer for {d}
!the {tn} should take {d}
!the {tn} is done in {d} set a timer
!my {tn} needs {d}
!set the timer for the {tn} to {d}
!start timing the {tn} {d}
!put the {tn} on a {d_adj} timer
"""
MORE["remind"] = """
give me a nudge in {d} to {r}
nudge me in {d} to {r}
set a reminder for {d} from now to {r}
set up a reminder in {d} to {r}
make a reminder to {r} in {d}
create a reminder to {r} in {d}
please remind me to {r} in {d}
{d} from now remind me to {r}
after {d} remind me to {r}
!i'd like a reminder to {r} in {d}
!i want a reminder in {d} to {r}
!i want to be reminded to {r} in {d}
!i must {r} in {d} so remind me
!i should {r} in {d} tell me then
!i'll need to {r} in {d} remind me
!make sure i {r} in {d}
!make sure i remember to {r} in {d}
!see that i {r} in {d}
!let me know to {r} in {d}
!could you remind me in {d} to {r}
!call out in {d} so that i {r}
!can you tell me in {d} to {r}
"""
MORE["delayed"] = """
{d} later {cmd}
when {d} have passed {cmd}
once {d} are over {cmd}
let {d} pass then {cmd}
give it {d} then {cmd}
give it {d} and {cmd}
i want you to {cmd} in {d}
in about {d} {cmd}
{cmd} but only in {d}
{cmd} when {d} are up
set a timer for {d} and then {cmd}
set a timer to {cmd} in {d}
"""
MORE["timer_cancel_all"] = """
cancel all timers that are running
drop all [the|my] timers
abort all timers
abort every timer
reset all timers
wipe all [the|my] timers
erase all [the|my] timers
kill every timer
stop every timer
stop each and every timer
throw out all the timers
!i want all timers (cancelled|stopped|gone|deleted)
!i'd like all [my] timers (cancelled|stopped)
!i want no timers
!all timers can be (cancelled|stopped)
!all [the|my] timers should be (cancelled|stopped)
!would you mind canceling all [the|my] timers
!let's cancel all [the|my] timers
!we don't need any timers
!forget all [the|my] timers
!never mind all the timers
"""
MORE["timer_status"] = """
!how far along is {x}
!how far is {x}
!how much is left on {x}
!how much time remains on {x}
!how many minutes are left on {x}
!how many seconds (are left|remain) on {x}
!how close is {x} to (done|being done|finished)
!what does {x} say
!what time is left on {x}
!what's the time left on {x}
!what remains on {x}
!where is {x} at
!where are we with {x}
!give me the status of {x}
!give me the time left on {x}
!tell me how long {x} has
!tell me when {x} (is done|will be done|ends)
!tell me what's left on {x}
!tell me about {x}
!do i have much time on {x}
!does {x} have long to go
!is there (much|any) time left on {x}
!is {x} almost (done|finished|up)
!is {x} about done
!any time left on {x}
!has {x} (finished|ended|gone off)
!can you check {x}
!could you tell me how much time is left on {x}
!i want to know how much time is left on {x}
!remaining time on {x}
"""
MORE["timer_of"] = """
!how many more minutes for {x}
!how many minutes does {x} have [left]
!how much time until {x} is (done|ready)
!how much time has {x} got [left]
!how much time does {x} still need
!how close is {x} to (done|ready|being done)
!how is {x} coming along
!how far along is {x}
!what's left for {x}
!what's the time left for {x}
!when does {x} come out
!when do i take out {x}
!when can i (get|take out) {x}
!is {x} (nearly|almost) (ready|done)
!does {x} need much longer
!tell me when {x} (is|will be) (done|ready)
!tell me how long {x} has left
!remaining time for {x}
!how many minutes till {x} is (done|ready)
!can you check on {x}
"""
MORE["timer_status_any"] = """
!what's on my timers
!what's the state of my timers
!what timers are there
!tell me (what|which) timers are running
!show me (my|the) timers
!read me (my|the) timers
!check (my|the) timers
!check all timers
!how much is left on my timers
!how are the timers doing
!any timers (running|going|set)
!are my timers still (running|going)
!could you check my timers
!status of (my|the|all) timers
!give me the status of (my|all) timers
!is anything being timed
"""
MORE["broadcast"] = """
inform everyone that {b}
inform everybody {b}
notify everyone that {b}
notify the (house|family) that {b}
put out the word that {b}
put out an announcement that {b}
put out a message that {b}
make it known that {b}
say to everyone {b}
say to the whole house {b}
say it in all rooms {b}
call everyone and say {b}
yell {b} to everyone
yell to the whole house {b}
relay to everyone that {b}
relay the message {b}
page everyone {b}
play the announcement {b}
play the message {b} in every room
announce to (everyone|everybody|the whole house) that {b}
announce to (everyone|everybody|the whole house) {b}
announce in (all rooms|every room|the whole house) that {b}
broadcast to (everyone|everybody|the whole house) that {b}
broadcast to (everyone|all rooms|the whole house) {b}
broadcast a message {b}
broadcast the message {b}
send out the message {b}
send out a message that {b}
send word to everyone that {b}
!i need everyone to know that {b}
!i'd like to announce that {b}
!i'd like everyone to know that {b}
!i want to announce {b}
!i want the whole house to know that {b}
!could you let everyone know that {b}
!would you mind telling everyone that {b}
!would you tell everybody that {b}
!please let the others know that {b}
!the whole house should know that {b}
!make sure everyone knows that {b}
!make sure everybody hears that {b}
"""
MORE["bright_bare"] = """
bring {room} (up|down|) to {v} brightness
take {room} (up|down) to {v} brightness
turn {room} (up|down) to {v} brightness
get {room} to {v} brightness
put {room} at {v} brightness
light {room} at {v}
keep {room} at {v} brightness
{v} brightness {in}
brightness {v} {in}
brightness to {v} {in}
lower the brightness {in} to {v}
raise the brightness {in} to {v}
dim it to {v} {in}
dim everything {in} to {v}
!i'd like {room} (at|dimmed to) {v} brightness
!{room} should be at {v} brightness
!the brightness {in} should be {v}
!i want the brightness {in} at {v}
!let's have {room} at {v} brightness
!how about {v} brightness {in}
!would you mind dimming {room} to {v}
"""
MORE["color_bare"] = """
give {room} (a {c} light|a {c} glow|some {c} light)
put {room} in {c}
have {room} in {c}
get {room} {c}
color {room} {c}
switch {room} to {c}
put some {c} light {in}
bring some {c} light {in}
make it {c} {in}
make everything {c} {in}
{room} in {c} [light]
!i want {room} (to be|in) {c}
!i'd like {c} light {in}
!{room} should be {c}
!let's have {c} light {in}
!let's make {room} {c}
!how about {c} light {in}
!would you mind making {room} {c}
!can we have {c} light {in}
!could {room} be {c}
"""
MORE["rel_bare_up"] = """
get it {by} brighter {in}
raise the brightness {by} {in}
bring up the brightness {by} {in}
bring the brightness up {by} {in}
bump up the brightness {by} {in}
a bit more light {in}
some more light {in}
!i want it {by} brighter {in}
!i'd like it {by} brighter {in}
!we could use more light {in}
!i could use more light {in}
!i need more light {in}
!it could be {by} brighter {in}
!let's make it {by} brighter {in}
!the light is too (weak|low|dim) {in}
!can we have it {by} brighter {in}
!{room} should be {by} brighter
!{room} could be {by} brighter
!{room} is too (dark|dim)
"""
MORE["rel_bare_down"] = """
get it {by} (dimmer|darker) {in}
lower the brightness {by} {in}
bring down the brightness {by} {in}
bring the brightness down {by} {in}
reduce the brightness {by} {in}
dim it {by} {in}
dim things {by} {in}
a bit less light {in}
soften the light {by} {in}
!i want it {by} (dimmer|darker) {in}
!i'd like it {by} (dimmer|darker) {in}
!it could be {by} (dimmer|darker) {in}
!let's make it {by} (dimmer|darker) {in}
!can we have it {by} (dimmer|darker) {in}
!we need less light {in}
!i need less light {in}
!{room} should be {by} (dimmer|darker)
!{room} could be {by} (dimmer|darker)
!{room} is too bright
"""
MORE["room_off"] = """
shut everything off {in}
switch everything off {in}
turn everything off {in}
turn off everything {in}
power everything down {in}
get everything off {in}
cut everything {in}
put {room} to sleep
stop everything {in}
!i want everything off {in}
!i'd like everything off {in}
!everything {in} should be off
!everything {in} can go off
!nobody is {in} anymore turn everything off
!we don't need anything on {in}
!let's turn everything off {in}
!would you mind turning everything off {in}
!make sure everything is off {in}
!(we're|i'm) out of {room} turn everything off
!(we're|i'm) finished {in} everything off
"""
MORE["q_count"] = """
!how many lights are burning {in}
!how many lights did (i|we) leave on {in}
!how many lights have (i|we) got on {in}
!what number of lights is on {in}
!tell me how many lights are on {in}
!can you count the lights that are on {in}
!could you tell me how many lights are on {in}
!i want to know how many lights are on {in}
!how many of the lights are on {in}
!how many lights (are|do we have) turned on {in}
!do you know how many lights are on {in}
!number of lights on {in}
"""
MORE["q_none"] = """
!do you know the {x}
!can you tell me the {x}
!could you check the {x}
!i want to know the {x}
!i'd like to know the {x}
!give me the {x}
!show me the {x}
!read me the {x}
!how's the {x} [in here|right now]
!what about the {x}
!what's the {x} like
!what {x} do we have
!is the {x} high
!any idea what the {x} is
"""
_IF = ("can you tell me if", "could you tell me whether", "do you know if", "do you know whether", "any idea if", "i'd like to know if", "i want to know whether", "could you check whether", "please check if", "check for me if", "let me know if", "find out if", "see if", "look whether", "could you see if", "are you sure that", "would you check if", "can you see whether", "i'm not sure if", "do you happen to know if")
MORE["q_on"] = "\n".join(["!%s {t} (is|are) %s" % (i, w) for i in _IF for w in ("on", "off", "running", "turned on", "switched on", "still on")] + """
!(is|are) {t} (powered|up and running)
!(is|are) {t} (turned|switched) off
!(is|are) {t} still running
!(is|are) {t} (already|currently) off
!has {t} been (turned|switched) on
!has {t} been left on
!was {t} left on
!did (someone|anyone) turn on {t}
!did you turn {t} on
!have you (turned|switched) {t} on
!is it true that {t} is on
!how's {t} doing
!what about {t} is it on
!what's up with {t} is it on
!what's the situation with {t}
!give me the (state|status) of {t}
!tell me the (state|status) of {t}
!tell me what {t} is doing
!tell me how {t} is set
!what's the current (state|status) of {t}
!state of {t}
!status of {t}
!(are|is) {t} working right now""".strip().splitlines())
MORE["q_open"] = "\n".join(["!%s {t} (is|are) %s" % (i, w) for i in _IF for w in ("open", "closed", "shut", "still open")] + """
!(is|are) {t} open right now
!has {t} been (opened|closed|left open)
!was {t} left open
!is it true that {t} is open
!did you (open|close) {t}
!have you closed {t}
!give me the (state|status) of {t}
!tell me the (state|status) of {t}
!what's the current (state|status) of {t}
!state of {t}
!status of {t}""".strip().splitlines())
MORE["q_locked"] = "\n".join(["!%s {t} is %s" % (i, w) for i in _IF for w in ("locked", "unlocked", "still locked")] + """
!is {t} locked (right now|at the moment|up)
!has {t} been (locked|left unlocked)
!was {t} left unlocked
!is it true that {t} is locked
!did you lock {t}
!have you locked {t}
!give me the (state|status) of {t}
!tell me the (state|status) of {t}
!what's the current (state|status) of {t}
!state of {t}
!status of {t}""".strip().splitlines())
_VAL = ("what's", "what is", "tell me", "can you tell me", "could you tell me", "do you know", "i'd like to know", "i want to know", "give me", "check", "read me", "what's the current value of", "let me know", "find out")
for _k, _n in (("q_bright", ("the brightness of {t}", "the brightness level of {t}", "the level of {t}", "how bright {t} is")), ("q_color", ("the color of {t}", "the current color of {t}", "what color {t} is", "which color {t} has")),
               ("q_position", ("the position of {t}", "how far open {t} is", "how far {t} is open")), ("q_fan", ("the speed of {t}", "the fan speed of {t}", "how fast {t} is running", "how fast {t} is going")),
               ("q_set", ("the target of {t}", "the setting of {t}", "the target temperature of {t}", "what {t} is set to", "the set temperature of {t}")), ("q_volume", ("the volume of {t}", "the volume level of {t}", "how loud {t} is", "the sound level of {t}"))):
    MORE[_k] = "\n".join("!%s %s" % (v, n) for v in _VAL for n in _n if not (v in ("what's", "what is", "give me", "check", "read me", "what's the current value of") and n.startswith(("how", "what", "which"))))
MORE["q_temp"] = "\n".join("!%s %s" % (v, n) for v in _VAL for n in ("the temperature {in}", "the room temperature {in}", "how warm it is {in}", "how cold it is {in}", "what temperature it is {in}", "the temperature of {room}") if not (v in ("what's", "what is", "give me", "check", "read me", "what's the current value of") and n.startswith(("how", "what")))) + """
!how (warm|hot|cold) did it get {in}
!how's the temperature {in}
!is {room} (warm|cold|hot)
!what are the degrees {in}
!what's it like {in} in degrees
!what temperature do we have {in}
!what temperature is {room}
!what temperature does {room} have
!what's the thermometer at {in}
!how many degrees do we have {in}"""
MORE["q_humidity"] = "\n".join("!%s %s" % (v, n) for v in _VAL for n in ("the humidity {in}", "the humidity level {in}", "how humid it is {in}") if not (v in ("what's", "what is", "give me", "check", "read me", "what's the current value of") and n.startswith("how"))) + """
!how much humidity is there {in}
!how's the humidity {in}
!how dry is it {in}
!what humidity do we have {in}
!is the air humid {in}"""
MORE["q_sensor"] = "\n".join("!%s {t}" % v for v in _VAL if v not in ("let me know", "find out", "do you know")) + """
!what does {t} show right now
!what is {t} at
!what's {t} at [right now]
!what's {t} [right now|at the moment|now]
!what value does {t} have
!what reading does {t} have
!where is {t} at
!tell me what {t} (says|shows|is)
!can you (check|read) {t}
!could you read {t} [to me]
!read {t} for me
!show me {t}
!{t} please
!how's {t}
!current value of {t}"""
MORE["q_playing"] = """
!tell me what's playing {on}
!tell me (which|what) song this is {on}
!can you tell me what's playing {on}
!could you tell me the name of this song {on}
!do you know (what|which) song this is {on}
!do you know what's playing {on}
!i'd like to know what's playing {on}
!what do we have playing {on}
!what are you playing {on}
!what's the (song|title|track) {on}
!what's the title of this (song|track) {on}
!what's this called {on}
!what's running {on}
!what is this (song|track) {on}
!which track is (this|playing) {on}
!what song do i hear {on}
!what's this music {on}
!what music is (this|playing) {on}
!is there music playing {on}
"""
MORE["q_which_on"] = """
!do (i|we) have any lights on {in}
!have (i|we) left any lights on {in}
!are there any lights left on {in}
!did (i|we|someone) forget a light {in}
!can you tell me which lights are on {in}
!could you check which lights are on {in}
!could you tell me (which|what) lights are on {in}
!do you know which lights are on {in}
!i'd like to know which lights are on {in}
!i want to know which lights are on {in}
!check which lights are on {in}
!show me which lights are on {in}
!give me the lights that are on {in}
!name the lights that are on {in}
!what lights do (i|we) have on {in}
!which lights did (i|we) leave on {in}
!which lights are (burning|lit) {in}
!which of the lights are on {in}
!which lights are (turned|switched) on {in}
!is some light on {in}
!any lights on {in}
!is it lit {in}
!is a lamp on {in}
!are all the lights off {in}
!did (i|we|someone) switch off the lights {in}
"""
MORE["q_which_open"] = """
!are the windows open {in}
!did (i|we|someone) leave a window open {in}
!is there a window open {in}
!is some window open {in}
!any windows open {in}
!have (i|we) left a window open {in}
!can you tell me which windows are open {in}
!could you check if a window is open {in}
!do you know which windows are open {in}
!tell me which windows are open {in}
!check the windows {in}
!which of the windows are open {in}
!do (i|we) have any windows open {in}
"""
MORE["q_which_locked"] = """
!(which|what) doors are not locked
!(which|what) doors are still (unlocked|open)
!are (all of|all of the) doors locked
!are the doors locked
!is every door locked
!is everything locked for the night
!is any door still (unlocked|open)
!are any of the doors unlocked
!are any doors open
!have (i|we) locked (everything|all the doors)
!did (we|you) lock (everything|all the doors)
!is the whole house locked [up]
!is any lock open
"""
MORE["q_area"] = """
!what have (i|we) got on {in}
!what do (i|we) have running {in}
!what's still on {in}
!what's still running {in}
!what's turned on {in}
!what's switched on {in}
!which devices are on {in}
!which things are on {in}
!is something on {in}
!is there something on {in}
!did (we|someone|anyone) leave anything on {in}
!have (i|we) left anything on {in}
!is everything turned off {in}
!is everything switched off {in}
!tell me what's on {in}
!tell me what is running {in}
!can you tell me what's on {in}
!could you check what's on {in}
!i want to know what's on {in}
!check if anything is on {in}
!anything on {in}
"""
MORE["q_list"] = """
!can you read {l}
!can you read me {l}
!could you read {l} to me
!could you tell me what's on {l}
!can you tell me what's on {l}
!would you read {l}
!i want to hear {l}
!i'd like to hear {l}
!i want to know what's on {l}
!let me hear {l}
!go through {l}
!go over {l} with me
!run through {l}
!check {l}
!open {l}
!what all is on {l}
!what else is on {l}
!what have (i|we) got on {l}
!what do we have on {l}
!what did (i|we) put on {l}
!what items are on {l}
!which things are on {l}
!what's written on {l}
!what's left on {l}
!is anything on {l}
!is {l} empty
!tell me {l}
!do (i|we) have (anything|something) on {l}
!{l} please
"""
MORE["q_list_shop"] = """
!what do (i|we) still need
!what do (i|we) need to pick up
!what's left to buy
!what is there to buy
!what do we need at the (store|supermarket|shop)
!what am i supposed to buy
!what should i bring from the (store|shop|supermarket)
!do we need anything from the (store|shop|supermarket)
!tell me what we need to buy
!tell me what to buy
"""
MORE["q_list_has"] = """
!did (i|we|someone) add {i} to {l}
!did (we|someone|you) put {i} on {l}
!have (i|we) put {i} on {l}
!has {i} been added to {l}
!check if {i} is on {l}
!check whether {i} is on {l}
!can you check if {i} is on {l}
!can you tell me if {i} is on {l}
!could you see if {i} is on {l}
!do you know if {i} is on {l}
!do you have {i} on {l}
!does {l} have {i}
!does {l} include {i}
!tell me if {i} is on {l}
!is there {i} on {l}
!is {i} still on {l}
!i wonder if {i} is on {l}
"""
MORE["q_list_count"] = """
!how many (things|items) do (i|we) have on {l}
!how many (things|items) does {l} have
!how many (things|items) are there on {l}
!count the (things|items) on {l}
!tell me how many (things|items) are on {l}
!what's the number of (things|items) on {l}
!can you count the (things|items) on {l}
!how full is {l}
"""
MORE["q_vacuum"] = """
!what's going on with {t}
!what's {t} up to
!what's the state of {t}
!where's {t}
!where has {t} gone
!tell me what {t} is doing
!tell me where {t} is
!can you tell me what {t} is doing
!do you know where {t} is
!do you know what {t} is doing
!is {t} done [cleaning|yet]
!is {t} on its way back
!is {t} at its dock
!is {t} on the move
!is {t} vacuuming
!is {t} working right now
!status of {t}
!give me the status of {t}
!did {t} (finish|return|go home)
!has {t} (docked|gone home|come back)
!check on {t}
"""
MORE["q_mower"] = """
!what's going on with {t}
!what's {t} up to
!what's the state of {t}
!where is {t}
!where's {t}
!tell me what {t} is doing
!tell me where {t} is
!do you know where {t} is
!is {t} done [mowing|yet]
!is {t} at its dock
!is {t} cutting the (grass|lawn)
!is {t} working right now
!status of {t}
!give me the status of {t}
!did {t} (finish|return|go home)
!has {t} (finished|docked|gone home|come back|returned)
!check on {t}
"""
MORE["q_binary"] = "\n".join("!%s {t} is {bw}" % i for i in _IF) + """
!is {t} still {bw}
!is {t} currently {bw}
!what's {t} (saying|showing)
!what is {t} (saying|showing)
!tell me the (state|status) of {t}
!give me the (state|status) of {t}
!tell me what {t} says
!what's the current (state|status) of {t}
!status of {t}
!state of {t}
!could you check {t}"""
MORE["q_motion"] = """
!is there a person {in}
!is there someone {in}
!is somebody moving {in}
!is anybody moving {in}
!is anything moving {in}
!is there any (movement|motion) {in}
!do you (detect|sense|notice) (anyone|any movement|motion) {in}
!has (anyone|someone|somebody) been {in}
!did (anyone|someone) (move|walk) {in}
!any (motion|movement) {in}
!tell me if (anyone|someone|somebody) is {in}
!check if (anyone|someone|somebody) is {in}
"""
MORE["q_leak"] = """
!is there any leak {in}
!is there a leak anywhere {in}
!is there any water {in}
!is the floor wet {in}
!is it wet {in}
!do we have a (leak|water leak) {in}
!any leaks {in}
!any water leaks {in}
!has anything leaked {in}
!check for (leaks|water) {in}
!is everything dry {in}
!is the floor dry {in}
"""
MORE["q_time"] = """
!could you tell me the time
!can you give me the time
!could you give me the time please
!may i have the time
!i'd like to know the time
!i want to know the time
!i need the time
!what hour is it
!what's the hour
!how late is it now
!what time do we have
!what time have you got
!what time would it be
!do you have the time please
!any idea what time it is
!any idea how late it is
!tell me what time it is
!tell me how late it is
!time check
!time
!check the time
!check the clock
!say the time
!current time
!current time please
!do you know what time it is
!can you tell me what time it is
!could you tell me what time it is
!what's the exact time
!what's the time right now
!what does my clock say
"""
MORE["q_weekday"] = """
!what's the day
!what's the day today
!what weekday do we have
!what day do we have today
!what day would it be
!which day do we have
!which day of the week is (it|today)
!tell me the day
!tell me what day of the week it is
!tell me which day it is
!can you tell me what day it is
!could you tell me the day of the week
!do you know what day it is
!i'd like to know what day it is
!any idea what day it is
!day of the week
!day of the week please
!today is what day
!is today (monday|tuesday|wednesday|thursday|friday|saturday|sunday)
!is it already (monday|tuesday|wednesday|thursday|friday|saturday|sunday)
!are we on (monday|tuesday|wednesday|thursday|friday|saturday|sunday)
!do we have (monday|tuesday|wednesday|thursday|friday|saturday|sunday) today
"""
MORE["q_date"] = """
!can you tell me the date
!could you tell me today's date
!do you know the date
!do you know what date it is
!i'd like to know the date
!i need today's date
!i want to know the date
!any idea what the date is
!tell me today's date
!tell me what date it is
!give me the date
!give me today's date
!which date do we have
!what date do we have [today]
!date please
!the date please
!current date
!say the date
!what's the current date
"""
MORE["q_month"] = """
!what month do we have
!which month do we have
!what's the current month
!tell me the month
!tell me what month it is
!tell me which month it is
!can you tell me the month
!do you know what month it is
!what month would it be
!the month please
!current month
!i'd like to know the month
"""
MORE["q_year"] = """
!what year do we have
!which year do we have
!what's the year
!what's the current year
!tell me the year
!tell me what year it is
!can you tell me the year
!do you know what year it is
!what year would it be
!the year please
!current year
!i'd like to know the year
"""
MORE["and_too"] = """
!and {t} while you're at it
!and the same for {t}
!and the same thing for {t}
!and do {t} too
!and do the same (for|with|to) {t}
!{t} too please
!{t} as well please
!also {t} please
!also do {t}
!same again for {t}
!same with {t}
!same goes for {t}
!the same with {t}
!that goes for {t} too
!apply that to {t} too
!do that (for|with|to) {t} too
!do that for {t} as well
!do {t} too
!do {t} as well
!do {t} the same way
!make that {t} too
!now the same for {t}
!now do {t}
!next {t}
!next do {t}
!oh also {t}
!oh {t} too
!oh and {t} too
!include {t}
!include {t} too
!let's do {t} too
!let's have the same for {t}
!not just that also {t}
!and finally {t}
!can you do {t} too
!could you do the same for {t}
!could you also do {t}
!i want the same for {t}
!i'd like the same for {t}
"""
MORE["it_on"] = """
!get (it|that|them) [back] on
!have (it|them) on [again]
!power (it|that|them) [back] on
!flip (it|that|them) [back] on
!flick (it|them) on
!start (it|them) [up] again
!activate (it|that|them)
!activate (it|that|them) again
!i want (it|them) [back] on
!i need (it|them) [back] on
!i'd like (it|them) [back] on
!i changed my mind turn (it|them) [back] on
!let's have (it|them) on
!let's turn (it|them) on
!can you turn (it|that|them) on
!could you switch (it|that|them) on
!could you turn (it|them) back on
!can (it|they) be on
!well turn (it|them) on
!please turn (it|them) on
!please switch (it|that) back on
!now turn (it|them) on [again]
!then turn (it|that|them) on
!yes turn (it|that|them) on
!no turn (it|that|them) on
!so turn (it|them) on
!make (it|them) on again
!on with (it|them)
!on
"""
MORE["it_off"] = """
!get (it|that|them) off
!have (it|them) off [again]
!power (it|that|them) [back] off
!power (it|that|them) down
!flip (it|that|them) [back] off
!flick (it|them) off
!stop (it|that|them) again
!cut (it|that|them)
!cut (it|them) off
!deactivate (it|that|them)
!disable (it|that|them)
!i want (it|them) off
!i need (it|them) off [again]
!i'd like (it|them) off
!i changed my mind turn (it|them) off
!i don't need (it|them) (anymore|any more|any longer)
!let's have (it|them) off
!let's turn (it|them) off
!can you turn (it|that|them) off
!could you switch (it|that|them) off
!could you turn (it|them) back off
!well turn (it|them) off
!please turn (it|them) off
!please switch (it|that) off
!now turn (it|them) off [again]
!then turn (it|that|them) off
!yes turn (it|that|them) off
!no turn (it|that|them) off
!so turn (it|them) off
!off with (it|them)
!off
!enough turn (it|them) off
"""
MORE["it_open"] = """
!open (it|that|them) up
!open (it|that|them) back up
!get (it|them) open
!pull (it|them) up
!pull (it|them) back up
!i want (it|them) open
!i'd like (it|them) open
!i changed my mind open (it|them)
!let's open (it|them)
!can you open (it|that|them)
!could you open (it|that|them)
!please open (it|that|them)
!now open (it|that|them)
!then open (it|that|them)
!well open (it|them) then
!no open (it|that|them)
!yes open (it|that|them)
!up again
!lift (it|them) again
!roll (it|them) back up
!make (it|them) open
!open please
"""
MORE["it_close"] = """
!close (it|that|them) up
!close (it|that|them) back up
!get (it|them) (closed|shut)
!pull (it|them) down
!pull (it|them) back down
!i want (it|them) (closed|shut)
!i'd like (it|them) (closed|shut)
!i changed my mind close (it|them)
!let's close (it|them)
!can you close (it|that|them)
!could you (close|shut) (it|that|them)
!please (close|shut) (it|that|them)
!now close (it|that|them)
!then close (it|that|them)
!well close (it|them) then
!no close (it|that|them)
!yes close (it|that|them)
!down again
!roll (it|them) back down
!make (it|them) closed
!close please
!shut (it|them) again
"""
MORE["it_lock"] = """
!lock (it|that) up
!lock (it|that)
!bolt it
!secure it
!get it locked
!i want it locked
!i'd like it locked
!let's lock it
!can you lock it
!could you lock (it|that)
!please lock it
!now lock it
!yes lock it
!no lock it
!make sure it's locked
!have it locked
"""
MORE["it_unlock"] = """
!unlock (it|that)
!unbolt it
!get it unlocked
!i want it unlocked
!i'd like it (unlocked|open)
!let's unlock it
!can you unlock it
!could you unlock (it|that)
!please unlock it
!now unlock it
!yes unlock it
!no unlock it
!have it unlocked
!well unlock it then
"""
MORE["it_bright"] = """
!get (it|them) to {v}
!put (it|that|them) (at|on) {v}
!have (it|them) at {v}
!take (it|them) to {v}
!bring (it|them) to {v}
!move (it|them) to {v}
!adjust (it|them) to {v}
!turn (it|them) to {v}
!i want (it|them) at {v}
!i'd like (it|them) at {v}
!i said {v}
!i meant {v}
!i'd rather have {v}
!i'd prefer {v}
!let's make (it|that) {v}
!let's have {v}
!let's try {v}
!let's go with {v}
!how about {v}
!what about {v}
!can you make (it|that) {v}
!could you set (it|them) to {v}
!can (it|they) be at {v}
!please make (it|that) {v}
!sorry {v}
!oh {v}
!no i said {v}
!no i meant {v}
!no set (it|that|them) to {v}
!not that {v}
!wait {v}
!well {v}
!okay {v}
!{v} is better
!{v} would be better
!{v} then
!now {v}
!just {v}
!now make (it|that) {v}
!then {v}
"""
MORE["it_color"] = """
!have (it|them) in {c}
!put (it|them) (in|on) {c}
!get (it|them) {c}
!switch (it|them) to {c}
!color (it|them) {c}
!i want (it|them) {c}
!i want {c}
!i'd like (it|them) {c}
!i'd like {c}
!i said {c}
!i meant {c}
!i'd rather have {c}
!i'd prefer {c}
!let's make (it|that|them) {c}
!let's have {c}
!let's try {c}
!let's go with {c}
!what about {c}
!can you make (it|that|them) {c}
!could you make (it|them) {c}
!could (it|they) be {c}
!please make (it|them) {c}
!sorry {c}
!oh {c}
!no i said {c}
!no i meant {c}
!no make (it|them) {c}
!not that {c}
!wait {c}
!well {c}
!okay {c}
!{c} is better
!{c} would be better
!{c} would be nice
!{c} then
!just {c}
!now make (it|them) {c}
!now in {c}
!and {c}
"""
for _k, _w, _verbs in (("it_brighter", "brighter", "turn|bring|push"), ("it_dimmer", "(dimmer|darker)", "turn|bring|take"), ("it_warmer", "warmer", "turn|bring|bump"), ("it_cooler", "cooler", "turn|bring|take"),
                       ("it_louder", "louder", "turn|crank|bring"), ("it_quieter", "(quieter|softer)", "turn|bring|take"), ("it_faster", "faster", "turn|speed|bring"), ("it_slower", "slower", "turn|slow|bring")):
    _p = "up" if _k in ("it_brighter", "it_warmer", "it_louder", "it_faster") else "down"
    MORE[_k] = """
!get (it|them) {by} %(w)s
!i want (it|them) {by} %(w)s
!i'd like (it|them) {by} %(w)s
!i need (it|them) {by} %(w)s
!(it|they) should be {by} %(w)s
!(it|they) could be {by} %(w)s
!could (it|they) be {by} %(w)s
!could you make (it|them) {by} %(w)s
!can you make (it|that|them) {by} %(w)s
!can you (%(v)s) (it|them) %(p)s {by}
!could you (%(v)s) (it|them) %(p)s {by}
!please make (it|them) {by} %(w)s
!please (%(v)s) (it|them) %(p)s {by}
!now {by} %(w)s
!now make (it|them) {by} %(w)s
!okay {by} %(w)s
!and {by} %(w)s
!no {by} %(w)s
!{by} %(w)s please
!{by} %(w)s again
!{by} %(w)s still
!let's make (it|them) {by} %(w)s
!let's have (it|them) {by} %(w)s
!go {by} %(w)s
!go %(p)s {by}
!(%(v)s) (it|them) %(p)s {by} again
!(%(v)s) (it|them) %(p)s {by} please
!%(p)s {by} again
!it needs to be {by} %(w)s
!would you make (it|them) {by} %(w)s
!would you mind making (it|them) {by} %(w)s
!how about {by} %(w)s
!try {by} %(w)s
""" % {"w": _w, "v": _verbs, "p": _p}
MORE["it_opener"] = """
!open (it|them) {by} further
!open (it|them) up {by}
!raise (it|them) {by}
!pull (it|them) up {by}
!move (it|them) up {by}
!i want (it|them) open {by} more
!could you open (it|them) {by} more
!can you raise (it|them) {by}
!let's open (it|them) {by} more
!now {by} more
!and {by} more
!{by} more please
!go up {by}
"""
MORE["it_closer"] = """
!close (it|them) {by} further
!lower (it|them) {by}
!pull (it|them) down {by}
!move (it|them) down {by}
!bring (it|them) down {by}
!i want (it|them) closed {by} more
!could you close (it|them) {by} more
!can you lower (it|them) {by}
!let's close (it|them) {by} more
!now {by} less
!and {by} less
!{by} less please
!go down {by}
"""
MORE["undo"] = """
!undo what you (just did|did)
!undo the last (thing|change|action)
!undo my last command
!reverse it
!reverse the last (thing|command|action)
!roll that back
!roll back the last (change|command)
!revert it
!revert the last (change|command|thing)
!take it back
!put that back
!put it back please
!put things back [the way they were]
!set that back
!restore it
!restore what it was
!return it to (how|what) it was
!go back
!go back to before
!back to before
!as it was before please
!make it like (before|it was)
!the way it was before
!i take that back
!i want that undone
!i'd like that undone
!i want it back [the way it was]
!i didn't want that
!i didn't mean that
!i didn't ask for that undo it
!i made a mistake undo it
!that was a mistake undo it
!that's not what i wanted undo it
!that's wrong put it back
!no no undo
!no put it back
!no change it back
!no take that back
!sorry undo that
!sorry change it back
!could you undo that
!can you undo that
!can you change it back
!could you put it back
!please undo that
!please put it back
!wait undo that
!actually undo that
!actually put it back
!let's undo that
"""
MORE["ans_one"] = """
!{t} is the one
!{t} is what i mean
!{t} is what i want
!it's {t}
!that's {t}
!i want {t}
!i'd like {t}
!i was talking about {t}
!i'm talking about {t}
!i was thinking of {t}
!let's take {t}
!let's go with {t}
!go with {t}
!go for {t}
!make it {t}
!{t} would be right
!{t} would be good
!{t} sorry
!sorry {t}
!well {t}
!hmm {t}
!okay {t}
!yes {t}
!{t} obviously
!{t} i guess
!{t} thanks
!that {p} one
!the {p} one of course
!the {p} one i think
!i mean the {p} one
!i meant the {p} one
!it's the {p} one
!i want the {p} one
!oh the {p} one
!um the {p} one
!let's take the {p} one
!well the {p} one
!{p} i think
!{p} of course
!i meant {p}
!i mean {p}
!just {t}
!only {t}
"""
MORE["ans_first"] = """
!the first one please
!the first please
!the first of those
!the first of the two
!the one you said first
!i mean the first one
!i meant the first
!take the first one
!let's take the first one
!number one
!option one
!the former please
!first one i think
!i want the first one
"""
MORE["ans_last"] = """
!the last one please
!the second one please
!the second of the two
!the second of those
!the last of those
!the one you said last
!the other one i mean the second
!i mean the second one
!i meant the last one
!take the second one
!take the last one
!let's take the second one
!number two
!option two
!the latter please
!i want the second one
"""
MORE["ans_both"] = """
!both of them please
!both i think
!both of course
!i mean both
!i meant both
!i want both
!take both
!let's do both
!do both
!well both
!the both of them
!both of those please
!all of those
!all of them please
!each of them
!every one of them
!both together
"""
MORE["ans_room"] = """
!the one {in_room}
!it's {in_room}
!i'm talking about {room}
!i was talking about {room}
!i meant {room}
!i mean the one {in_room}
!i meant the one {in_room}
!i want the one {in_room}
!let's say {room}
!let's do {room}
!make it {room}
!go with {room}
!take {room}
!take the one {in_room}
!well {room}
!hmm {room}
!oh {room}
!um {room}
!okay {room}
!yes {room}
!sorry {room}
!{room} i think
!{room} i guess
!{room} thanks
!{in_room} i think
!{in_room} of course
!just {in_room}
!only {in_room}
!just {room}
"""
MORE["ans_never"] = """
!never mind then
!oh never mind
!forget about it
!no forget it
!leave it then
!just leave it
!none of those
!none of these
!none please
!neither of them
!neither one
!not those
!no thanks
!no thank you
!no need
!drop it
!skip it
!it's okay
!it's fine
!don't bother
!cancel that
!cancel it
!stop forget it
!let's leave it
!i changed my mind
!i don't care
!doesn't matter
"""
MORE["dont"] = "\n".join("!%s %s" % (a, b) for a in ("don't", "no don't", "please don't", "do not", "please do not", "you don't have to", "you don't need to", "no need to", "there's no need to", "don't you dare", "never", "i didn't ask you to", "i don't want you to", "stop don't", "wait don't", "i'd rather you didn't")
                        for b in ("turn {t} (on|off)", "switch {t} (on|off)", "turn (on|off) {t}", "touch {t}", "change {t}", "do anything with {t}"))
MORE["cannot"] = """
!(what's|how's) the weather [in paris|in london|tonight|on monday|like this morning]
!(how|what) is the weather going to be [tonight|next week|tomorrow morning]
!will it (snow|storm|be sunny|be cold|be hot) [today|tomorrow|tonight|this weekend]
!(should|do) i (take|need|bring) (an umbrella|a jacket|a coat|sunscreen) [today|tomorrow]
!is there (rain|snow|a storm) coming
!when does it (stop|start) raining
!what's the (pollen count|air quality) in (town|the city|paris)
!(any|what) news [today|from the world]
!what happened (today|in the world|in politics) [today]
!did (the home team|our team|barcelona|the lakers) win [last night|yesterday]
!who's playing in the (final|cup|game) [tonight]
!what's the (result|score) of the (match|race|game|election)
!who (is|was) (cleopatra|marie curie|the first man on the moon|abraham lincoln|mahatma gandhi)
!who (is|was) the (first|last|current) (president|emperor|pope|king) [of rome|of germany]
!where is (mount everest|timbuktu|the nearest pharmacy|the louvre|iceland)
!what's the (biggest|smallest|deepest|oldest|fastest) (country|ocean|animal|city|lake) [in the world]
!what's the (currency|language|flag) of (brazil|japan|sweden|india)
!how (big|old|heavy|hot|deep|long) is (the sun|the nile|the ocean|a blue whale|the great wall)
!how many (people|countries|planets|languages) are there [in the world]
!how many (ounces|feet|grams|teaspoons) are in a (pound|mile|kilo|cup)
!why is the (sky|sea) blue
!why do (cats purr|leaves fall|we dream|birds sing)
!what's the (difference between|meaning of) (a crow and a raven|irony|karma)
!what's (five|eight|nine|thirty) (times|plus|minus|divided by) (seven|eleven|two|five)
!what is (ten|twenty|sixty) percent of (eighty|two hundred|a thousand)
!(add|multiply|divide) (five|seven|nine) (and|by) (three|twelve)
!solve (this equation|x plus two equals five)
!define (irony|entropy|nostalgia|photosynthesis|osmosis)
!what's another word for (happy|big|fast|nice)
!what rhymes with (orange|moon|house|light)
!how do you say (thank you|goodbye|cheese|water) in (french|german|spanish|chinese)
!translate (i am hungry|where is the station|this) (to|into) (english|russian|greek)
!(call|phone|dial|ring) (grandma|my boss|emergency services|the plumber|anna|room service|the neighbors)
!(call|phone) (my brother|my husband|the vet|the pizza place) (now|for me|on speaker)
!(hang up|answer) the (call|phone)
!(text|message|email|write to) (grandma|anna|my teacher|the landlord|the team) [that i'm late|saying hello|about dinner]
!send (anna|my wife|my brother|the office) (a text|a message|an email|my location)
!read (me |)my (texts|last message|voicemail|notifications|inbox)
!(did i get|have i got|are there) any (mails|messages|calls|letters) [today]
!(order|buy|get me) (flowers|a burger|dog food online|a book on the internet|new shoes|two tickets|a cab|thai food)
!(order|book) (a cab|a room|a massage|a haircut|a hotel) [for tomorrow|for tonight]
!(cancel|change|confirm) my (reservation|appointment|flight|order|subscription)
!(schedule|plan|put) (a meeting|lunch with anna|a call|an appointment) [for tomorrow|on monday|in my calendar]
!what (do i have|have i got) (planned|scheduled|on) [today|tomorrow|this week]
!when is (my dentist appointment|the next holiday|her birthday|the deadline)
!(set|make) an alarm for (six|half past five|noon|monday|tomorrow at eight)
!wake me (up |)(at five|tomorrow at nine|on sunday at ten|when the sun comes up)
!(cancel|delete|turn off) my alarm [for tomorrow]
!where (did i park|did i leave my keys|are my socks|is the remote|is my sister|is everybody)
!(find|locate|ring) my (watch|tablet|headphones|bag|phone)
!how (long|far) (is it|do i need) to (the office|the beach|new york|school)
!what's the (fastest|shortest|best) way to (the airport|work|town)
!is there (traffic|a traffic jam) [on the highway|on the way to work]
!when is the next (bus|train|flight) [to town|home]
!(give|find) me a recipe (with chicken|for dinner|for brownies|for pasta)
!how (long|do i) (boil an egg|cook rice|roast a turkey)
!what can i cook with (eggs|potatoes|leftovers)
!what goes well with (salmon|red wine|steak)
!what should i (have for dinner|give my mom|name my cat|say to her)
!(recommend|suggest) a (movie|book|restaurant|game|wine)
!(open|launch|start|install) (spotify on my phone|the calculator|instagram|my email|the camera app)
!(search|look up|google) (plumbers near me|the news|cheap hotels|how to fix a bike)
!(look|search) that up (online|on the internet)
!(take|send me) a (photo|video|selfie|screenshot) [of this]
!(record|dictate|write down) (a note|my thoughts|a letter|this meeting)
!(write|compose) (a poem|an email|a song|a story) [for my wife|about the sea]
!(draw|paint|show) me a (picture|cat|map|house)
!let's play (a game|chess|twenty questions|a quiz)
!what's my (horoscope|bank balance|schedule|blood pressure|shoe size)
!what's the (wifi|router|alarm) (password|code)
!(who|what) was that (noise|at the door|outside)
!(remember|memorize|note) that (i parked outside|my code is one two three|anna is coming)
!what did (i|she|he|we) (say|talk about) (yesterday|this morning|last week)
!(upgrade|reboot|reset|factory reset) yourself
!(connect|pair) my (phone|headphones|watch) [with bluetooth]
!(charge|drive|wash|park|lock) my (bike|car|truck) for me
!(bring|fetch|pour|get) me (a drink|my slippers|a blanket|some water|the newspaper)
!(make|cook|bake|fry) (me |)(an omelette|a cake|some pasta|pancakes|a salad)
!(walk|groom|train|pet) the (dog|cat|puppy|horse)
!(iron|fold|sew|mend) (my shirt|the clothes|my pants|my socks)
!(tidy|paint|decorate|rearrange) (my room|the house|the walls|my desk) [for me]
!(fix|repair|build|assemble) (the sink|my bike|a shelf|the roof)
!(water|trim|plant|prune) the (hedge|roses|bushes|trees) [for me]
!(pay|split|check) (the bill|my taxes|the check|my credit card)
!(send|transfer|lend) (me |)(a hundred dollars|some money|fifty pounds)
!(buy|sell) (bitcoin|shares of apple|my car|gold)
!how (is|are) (the market|bitcoin|stocks|apple shares) doing
!what's (bitcoin|gold|oil|gas) (at|worth) [today]
!(stop|end|start) the (war|rain|snow|party next door)
!(teleport|beam|fly) me (home|to mars|to paris)
!(predict|tell me) (the future|the lottery numbers|my fortune)
!(lose|gain) weight for me
!(tell|ask|remind) (anna|the kids|my wife|tom) to (call me|come home|buy milk on the way)
!what (is|does) (he|she|anna|the cat) (doing|thinking|want)
!are my (friends|kids|parents) (home|okay|at school)
!what's (on at the cinema|in the theaters|on sale|showing tonight)
!how (much|expensive) is (a new phone|the rent|a ticket to rome|gas)
!(is|are) (the shops|the gym|the post office|the pool) open (today|now|on sunday)
!when was the (french revolution|moon landing|last world cup|battle of hastings)
!what year did (titanic sink|the war end|elvis die)
!who (directed|starred in|composed|wrote) (casablanca|that movie|the four seasons|harry potter)
!what (books|movies|songs) did (tolkien|spielberg|prince) (write|make)
!what's the (chemical symbol|melting point|price) of (gold|iron|silver)
!how does (a car|an engine|a fridge|the internet|a plane) work
!(teach|explain) me (french|the rules of poker|how to dance|how to knit)
!count to (ten|a hundred|five)
!say the alphabet [backwards]
!(spell|pronounce) (chrysanthemum|my name|february|handkerchief)
"""
MORE["chat_misc"] = """
!fine
!good
!no thanks
!no thank you
!not really
!maybe
!perhaps
!exactly
!that's right
!that's true
!that's wrong
!true
!why
!why not
!how come
!what
!huh
!pardon
!come again
!i beg your pardon
!i didn't catch that
!what was that
!what do you mean
!are you sure
!are you kidding
!seriously
!i don't understand
!i understand
!got it
!all right
!alright
!alright then
!okay then
!let's see
!well
!well well
!so
!anyway
!by the way
!guess what
!you know
!oh no
!oh well
!oh my
!ouch
!yay
!hooray
!cool
!neat
!funny
!very funny
!ha ha
!lol
!nice one
!you don't say
!it's nothing
!it's a long story
!nothing special
!just testing
!can we talk
!talk to me
!let's talk
!keep me company
!tell me about yourself
!do you like music
!do you like (cats|dogs|pizza|me)
!do you have (friends|feelings|a family|a heart)
!what do you like
!what's your favorite (food|song|movie|animal|number)
!where do you live
!do you ever sleep
!do you get tired
!can you keep a secret
!can you dance
!can you hear everything
!what are you thinking
!what would you do
!is anybody there
!nobody
!good luck
!have fun
!happy easter
!happy new year to you
!congratulations
!cheers
!welcome
!welcome back
!long time no see
!i missed you
!i'm back home
!how was it
!guess who
!it's me
!this is (anna|tom|me)
!my name is (anna|tom|max)
!call me (anna|boss|max)
"""
MORE["feel"] = """
!i'm (exhausted|worn out|sleepy|wide awake|nervous|angry|annoyed|excited|in love|worried|confused|upset|relieved|fine|okay|ill|busy|late|lost|ready|starving)
!i am (tired|sad|happy|bored|hungry|thirsty|lonely|sick)
!i feel (great|awful|sick|lonely|better|tired|old|good)
!i had a (great|long|rough|terrible|wonderful) (day|night|week)
!i (can't|couldn't) sleep
!i need a (hug|break|holiday|nap)
!i miss (my mom|my dog|home|the sun)
!i hate (mondays|my job|rain|cooking)
!i love (summer|my family|this house|weekends)
!i'm looking forward to (the weekend|christmas|tomorrow)
!my (back|head|leg|stomach) hurts
!my day was (great|awful|long)
!today was a (good|bad|long) day
!it was a (hard|long|lovely) day
!i'm (home|back) from work
!i'm off to (work|school|the gym)
!nobody likes me
!everything is terrible
!life is good
!i got (a new job|married|a promotion|the flu)
"""
MORE["thanks"] = """
!thank you so much
!thanks so much
!many thanks
!thanks very much
!thank you kindly
!thank you my friend
!thanks buddy
!thanks for that
!thanks for your help
!that's great
!that's nice
!that's good
!that's perfect
!that's lovely
!that's it thanks
!okay thank you
!okay great
!all good thanks
!good work
!nice work
!great work
!great job
!good thank you
!super
!fantastic
!amazing
!sweet
!very good
!very nice
!just right
!much obliged
!i appreciate it
!ta
!bravo
"""
MORE["hello"] = """
!hello again
!hi again
!hey hey
!hello my friend
!hi buddy
!hey computer
!hello computer
!hey hearth
!hello hearth
!hi house
!are you on
!are you awake
!is anyone there
!do you hear me
!can anybody hear me
!hello is this thing on
!hiya
!heya
!hey you
!hello assistant
!hi assistant
!good to see you
!nice to meet you
"""
MORE["nevermind"] = """
!no never mind
!never mind that
!oh forget it
!just forget it
!forget what i said
!forget i asked
!no forget it
!okay never mind
!sorry never mind
!it doesn't matter
!doesn't matter
!no matter
!cancel that
!no cancel that
!stop that
!please stop
!no stop
!enough
!that's enough
!enough already
!silence
!silence please
!quiet please
!keep quiet
!shush
!be silent
!go away
!leave me alone
!i didn't mean you
!i was not talking to you
!i'm not talking to you
!nobody asked you
!i said nothing
!nothing never mind
!no nothing
!wrong person
!sorry not you
!ignore me
!ignore what i said
!disregard that
!scratch that
!i changed my mind
!i've changed my mind
!on second thought no
!no need
!don't bother
!no don't do it
!let it be
!let it go
!skip it
!just leave it
!please be quiet
"""
MORE["bye"] = """
!bye for now
!bye house
!bye hearth
!see you soon
!see you around
!see ya
!so long
!farewell
!take care
!until tomorrow
!talk to you later
!catch you later
!i have to go
!i've got to go
!i'm going now
!i'm going out
!we're leaving
!that's all for now
!that's all thanks
!that's everything
!no more
!no that's it
!i'm finished
!we're done
!i don't need anything else
!nothing more
"""
MORE["night"] = """
!good night hearth
!good night everyone
!night house
!sweet dreams
!sleep tight
!i'm off to bed
!i'm going to sleep
!time for bed
!i'm turning in
!see you in the morning
!until tomorrow good night
"""
MORE["who"] = """
!what should i call you
!do you have a (face|body|gender|birthday)
!are you a (man|woman|person|computer|program)
!are you (an a i|artificial|alive|google|cortana|jarvis)
!who are you exactly
!what exactly are you
!who is this
!who's there
!who's speaking
!who programmed you
!who owns you
!who do you work for
!where do you come from
!what's your (age|job|purpose|story)
!when were you (born|made)
!tell me who you are
!tell me your name
!are you spying on me
!are you recording me
!do you speak (french|spanish|german)
"""
MORE["can"] = """
!what all can you do
!what else can you do
!what are you able to do
!what can you help [me] with
!what can you control
!what could you do for me
!how does this work
!how do i use you
!how can i use you
!how do i talk to you
!give me some help
!i need some help
!can you help me
!could you help me
!show me what you can do
!tell me what i can say
!tell me what you know
!what features do you have
!what things can you do
!what should i say
!which commands can i use
"""
MORE["howare"] = """
!how are things
!how are things going
!how are we today
!how are you feeling
!how are you tonight
!how are you this morning
!how do you feel today
!how's life
!how's your day
!how's everything
!how goes it
!how you doing
!is everything okay
!are you well
!are you doing okay
!are you happy
!what's going on
!what's happening
!you okay
!everything good
"""
MORE["praise"] = """
!you're great
!you're the best
!you're awesome
!you're wonderful
!you're so smart
!you are clever
!you are the best
!you are nice
!you're nice
!you're very helpful
!you did well
!you did a good job
!you're a star
!you're a genius
!you're my favorite
!i really like you
!i like your voice
!i'm glad i have you
!good bot
!good robot
!clever
!smart
!i'm impressed
"""
MORE["insult"] = """
!you're an idiot
!you idiot
!you're dumb
!you are stupid
!you are useless
!you're terrible
!you're no help
!you're not very smart
!you're slow
!you're wrong
!you're bad at this
!you never get it right
!you always get it wrong
!that's wrong
!that's not right
!that's not what i wanted to hear
!that makes no sense
!that didn't work
!it didn't work
!are you deaf
!are you stupid
!bad robot
!i don't like you
!i'm mad at you
!what's wrong with you
"""
MORE["joke"] = """
!tell me another joke
!tell us a joke
!got any jokes
!have you got a joke
!i need a laugh
!say a joke
!tell me a good joke
!tell me a knock knock joke
!tell me a dad joke
!crack a joke
!can you tell a joke
!can you tell me a joke
!can you be funny
!be funny
!joke please
!let me hear a joke
!do you have a joke for me
!cheer me up
"""
