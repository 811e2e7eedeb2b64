# SPDX-License-Identifier: MIT
"""Parts put together: more template lines for templates.py, beside those of lines/*.txt.

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


# -- phrases put together in every way ----------------------------------------

# @m: the kind of thing that is played, @s: what one does with it
PLAY = """
start playing the (@m) {q} {on}
get the (@m) {q} going {on}
bring up the (@m) {q} {on}
pull up the (@m) {q} {on}
turn on the (@m) {q} {on}
find the (@m) {q} and play it {on}
look for the (@m) {q} and play it {on}
queue up the (@m) {q} {on}
stream the (@m) {q} {on}
give me the (@m) {q} {on}
have the (@m) {q} playing {on}
!i want you to play the (@m) {q} {on}
!i'd like to (@s) the (@m) {q} {on}
!i'd love to (@s) the (@m) {q} {on}
!i feel like the (@m) {q} {on}
!i'm in the mood for the (@m) {q} {on}
!we want to (@s) the (@m) {q} {on}
!let's put on the (@m) {q} {on}
!let's have the (@m) {q} {on}
!could we (@s) the (@m) {q} {on}
!can i (@s) the (@m) {q} {on}
!would you mind playing the (@m) {q} {on}
!how about the (@m) {q} {on}
!what about the (@m) {q} {on}
!it's time for the (@m) {q} {on}
"""
PLAYED = {"playlist": "playlist", "artist": "artist|band|singer", "track": "song|track", "album": "album|record", "movie": "movie|film", "show": "show|series", "podcast": "podcast"}

# @w: brighter, @v: turn, @p: up
IT = """
!get (it|them) {by} @w
!i want (it|them) {by} @w
!i'd like (it|them) {by} @w
!i need (it|them) {by} @w
!(it|they) should be {by} @w
!(it|they) could be {by} @w
!could (it|they) be {by} @w
!could you make (it|them) {by} @w
!can you make (it|that|them) {by} @w
!can you (@v) (it|them) @p {by}
!could you (@v) (it|them) @p {by}
!please make (it|them) {by} @w
!please (@v) (it|them) @p {by}
!now {by} @w
!now make (it|them) {by} @w
!okay {by} @w
!and {by} @w
!no {by} @w
!{by} @w please
!{by} @w again
!{by} @w still
!let's make (it|them) {by} @w
!let's have (it|them) {by} @w
!go {by} @w
!go @p {by}
!(@v) (it|them) @p {by} again
!(@v) (it|them) @p {by} please
!@p {by} again
!it needs to be {by} @w
!would you make (it|them) {by} @w
!would you mind making (it|them) {by} @w
!how about {by} @w
!try {by} @w
"""
IT_IS = {"brighter": ("brighter", "turn|bring|push", "up"), "dimmer": ("(dimmer|darker)", "turn|bring|take", "down"), "warmer": ("warmer", "turn|bring|bump", "up"), "cooler": ("cooler", "turn|bring|take", "down"),
         "louder": ("louder", "turn|crank|bring", "up"), "quieter": ("(quieter|softer)", "turn|bring|take", "down"), "faster": ("faster", "turn|speed|bring", "up"), "slower": ("slower", "turn|slow|bring", "down")}

IF = ("can you tell me if", "could you tell me whether", "do you know if", "do you know whether", "any idea if", "i'd like to know if",
      "i want to know whether", "could you check whether", "please check if", "check for me if", "let me know if", "find out if", "see if", "look whether",
      "could you see if", "are you sure that", "would you check if", "can you see whether", "i'm not sure if", "do you happen to know if")
IS = {"q_on": ("{t} (is|are) on", "{t} (is|are) off", "{t} (is|are) running", "{t} (is|are) turned on", "{t} (is|are) switched on", "{t} (is|are) still on"), "q_open": ("{t} (is|are) open", "{t} (is|are) closed", "{t} (is|are) shut", "{t} (is|are) still open"),
      "q_locked": ("{t} is locked", "{t} is unlocked", "{t} is still locked"), "q_binary": ("{t} is {bw}",)}

VALUE = ("what's", "what is", "tell me", "can you tell me", "could you tell me", "do you know", "i'd like to know", "i want to know", "give me", "check",
         "read me", "what's the current value of", "let me know", "find out")
NOUNS_ONLY = ("what's", "what is", "give me", "check", "read me", "what's the current value of")      # nobody says "give me how bright it is"
VALUES = {
    "q_bright": ("the brightness of {t}", "the brightness level of {t}", "the level of {t}", "how bright {t} is"), "q_color": ("the color of {t}", "the current color of {t}", "what color {t} is", "which color {t} has"),
    "q_position": ("the position of {t}", "how far open {t} is", "how far {t} is open"), "q_fan": ("the speed of {t}", "the fan speed of {t}", "how fast {t} is running", "how fast {t} is going"),
    "q_set": ("the target of {t}", "the setting of {t}", "the target temperature of {t}", "what {t} is set to", "the set temperature of {t}"), "q_volume": ("the volume of {t}", "the volume level of {t}", "how loud {t} is", "the sound level of {t}"),
    "q_temp": ("the temperature {in}", "the room temperature {in}", "how warm it is {in}", "how cold it is {in}", "what temperature it is {in}", "the temperature of {room}"),
    "q_humidity": ("the humidity {in}", "the humidity level {in}", "how humid it is {in}"),
}

DONT = ("don't", "no don't", "please don't", "do not", "please do not", "you don't have to", "you don't need to", "no need to", "there's no need to",
        "don't you dare", "never", "i didn't ask you to", "i don't want you to", "stop don't", "wait don't", "i'd rather you didn't")
DONE = ("turn {t} (on|off)", "switch {t} (on|off)", "turn (on|off) {t}", "touch {t}", "change {t}", "do anything with {t}")


def crossed():
    """{key: [line, ...]}"""
    out = {}
    for k, kinds in PLAYED.items():
        see = "watch|see" if k in ("movie", "show") else "hear|listen to"
        out["play_" + k] = PLAY.replace("@m", kinds).replace("@s", see).strip().splitlines()
    for k, (w, verbs, way) in IT_IS.items():
        out["it_" + k] = IT.replace("@w", w).replace("@v", verbs).replace("@p", way).strip().splitlines()
    for k, what in IS.items():
        out[k] = ["!%s %s" % (i, w) for i in IF for w in what]
    for k, nouns in VALUES.items():
        out[k] = ["!%s %s" % (v, n) for v in VALUE for n in nouns if not (v in NOUNS_ONLY and n.startswith(("how", "what", "which")))]
    out["q_sensor"] = ["!%s {t}" % v for v in VALUE if v not in ("let me know", "find out", "do you know")]
    out["dont"] = ["!%s %s" % (a, b) for a in DONT for b in DONE]
    return out
