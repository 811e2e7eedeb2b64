# SPDX-License-Identifier: MIT
"""The text that the model reads: docs/home-prompt.md, byte for byte as runtime/home/prompt.c."""
import json

from house import SWITCHABLE

INTRO = "You are the voice of this home. Act with the tools, use only names listed here, answer in one short sentence."

MEDIA = ["name", "area"]
TIMER = ["start_hours", "start_minutes", "start_seconds", "name"]
TOOLS = [  # name, domains that call for it (None: always), slots, required
    ("HassTurnOn", SWITCHABLE, ["name", "area", "floor", "domain", "device_class"], []),
    ("HassTurnOff", SWITCHABLE, ["name", "area", "floor", "domain", "device_class"], []),
    ("HassLightSet", {"light"}, ["name", "area", "floor", "brightness", "color", "temperature"], []),
    ("HassSetPosition", {"cover"}, ["name", "area", "floor", "domain", "device_class", "position"], ["position"]),
    ("HassFanSetSpeed", {"fan"}, ["name", "area", "floor", "percentage"], ["percentage"]),
    ("HassClimateSetTemperature", {"climate"}, ["name", "area", "floor", "temperature"], ["temperature"]),
    ("HassMediaPause", {"media_player"}, MEDIA, []),
    ("HassMediaUnpause", {"media_player"}, MEDIA, []),
    ("HassMediaNext", {"media_player"}, MEDIA, []),
    ("HassMediaPrevious", {"media_player"}, MEDIA, []),
    ("HassMediaPlayerMute", {"media_player"}, MEDIA, []),
    ("HassMediaPlayerUnmute", {"media_player"}, MEDIA, []),
    ("HassSetVolume", {"media_player"}, MEDIA + ["volume_level"], ["volume_level"]),
    ("HassSetVolumeRelative", {"media_player"}, MEDIA + ["volume_step"], ["volume_step"]),
    ("HassMediaSearchAndPlay", {"media_player"}, ["search_query", "name", "area", "media_class"], ["search_query"]),
    ("HassVacuumStart", {"vacuum"}, MEDIA, []),
    ("HassVacuumReturnToBase", {"vacuum"}, MEDIA, []),
    ("HassVacuumCleanArea", {"vacuum"}, ["area"], ["area"]),
    ("HassLawnMowerStartMowing", {"lawn_mower"}, ["name"], []),
    ("HassLawnMowerDock", {"lawn_mower"}, ["name"], []),
    ("HassListAddItem", {"todo"}, ["item", "name"], ["item", "name"]),
    ("HassListCompleteItem", {"todo"}, ["item", "name"], ["item", "name"]),
    ("HassListRemoveItem", {"todo"}, ["item", "name"], ["item", "name"]),
    ("HassStartTimer", None, ["hours", "minutes", "seconds", "name", "conversation_command"], []),
    ("HassCancelTimer", None, TIMER, []),
    ("HassCancelAllTimers", None, [], []),
    ("HassIncreaseTimer", None, ["hours", "minutes", "seconds"] + TIMER, []),
    ("HassDecreaseTimer", None, ["hours", "minutes", "seconds"] + TIMER, []),
    ("HassPauseTimer", None, TIMER, []),
    ("HassUnpauseTimer", None, TIMER, []),
    ("HassTimerStatus", None, TIMER, []),
    ("HassBroadcast", "areas", ["message"], ["message"]),
    ("GetLiveContext", "any", ["name", "area", "domain"], []),
    ("GetDateTime", None, [], []),
]
DESCRIPTIONS = {
    "HassTurnOn": "Turns on, opens or locks a device, or activates a scene or script.",
    "HassTurnOff": "Turns off, closes or unlocks a device.",
    "HassLightSet": "Sets the brightness in percent, the color by name or the color temperature in kelvin of lights.",
    "HassSetPosition": "Sets the position of a cover in percent open.",
    "HassFanSetSpeed": "Sets the speed of a fan in percent.",
    "HassClimateSetTemperature": "Sets the target temperature of a thermostat.",
    "HassMediaPause": "Pauses a media player.",
    "HassMediaUnpause": "Resumes a media player.",
    "HassMediaNext": "Skips to the next track.",
    "HassMediaPrevious": "Goes back to the previous track.",
    "HassMediaPlayerMute": "Mutes a media player.",
    "HassMediaPlayerUnmute": "Unmutes a media player.",
    "HassSetVolume": "Sets the volume of a media player in percent.",
    "HassSetVolumeRelative": "Raises or lowers the volume of a media player by a step.",
    "HassMediaSearchAndPlay": "Searches for media and plays it.",
    "HassVacuumStart": "Starts a vacuum cleaner.",
    "HassVacuumReturnToBase": "Sends a vacuum cleaner back to its dock.",
    "HassVacuumCleanArea": "Has the vacuum cleaner clean an area.",
    "HassLawnMowerStartMowing": "Starts a lawn mower.",
    "HassLawnMowerDock": "Sends a lawn mower back to its dock.",
    "HassListAddItem": "Adds an item to a to-do list.",
    "HassListCompleteItem": "Marks an item of a to-do list as done.",
    "HassListRemoveItem": "Removes an item from a to-do list.",
    "HassStartTimer": "Starts a timer, which can carry out a command when it ends.",
    "HassCancelTimer": "Cancels a timer.",
    "HassCancelAllTimers": "Cancels all timers.",
    "HassIncreaseTimer": "Adds time to a timer.",
    "HassDecreaseTimer": "Takes time off a timer.",
    "HassPauseTimer": "Pauses a timer.",
    "HassUnpauseTimer": "Resumes a paused timer.",
    "HassTimerStatus": "Tells how much time is left on timers.",
    "HassBroadcast": "Speaks a message in every room.",
    "GetLiveContext": "Tells the present state of devices, sensors and areas.",
    "GetDateTime": "Tells the date and time.",
}
INTEGERS = {"brightness", "position", "percentage", "volume_level", "volume_step", "hours", "minutes", "seconds",
            "start_hours", "start_minutes", "start_seconds"}


def _aliases(names):
    return " (%s)" % ", ".join(names) if names else ""


def system(home):
    out = [INTRO, "Temperatures are in %s." % home.unit]
    if home.floors:
        out.append("Floors: " + ", ".join(n + _aliases(a) for n, a in home.floors))
    for area in [*home.areas, None]:
        es = [e for e in home.entities if e.area == (area.name if area else None)]
        if area:
            out.append("%s%s%s:" % (area.name, _aliases(area.aliases), ", " + area.floor if area.floor else ""))
        elif es:
            out.append("No area:")
        for e in es:
            out.append("- %s%s: %s%s" % (e.name, _aliases(e.aliases), e.domain, " " + e.cls if e.cls else ""))
    return "\n".join(out)


def tools(home, full=False):
    have = home.domains()
    classes = any(e.cls for e in home.entities)
    out = []
    for name, when, slots, required in TOOLS:
        if isinstance(when, set) and not when & have:
            continue
        if when == "any" and not home.entities or when == "areas" and len(home.areas) < 2:
            continue
        props = {}
        for s in slots:
            if s == "floor" and not home.floors or s == "device_class" and not classes:
                continue
            if not full:
                props[s] = {}
            elif s == "temperature" and name == "HassClimateSetTemperature":
                props[s] = {"type": "number"}
            else:
                props[s] = {"type": "integer" if s in INTEGERS or s == "temperature" else "string"}
        fn = {"name": name}
        if full:
            fn["description"] = DESCRIPTIONS[name]
        fn["parameters"] = {"type": "object", "properties": props}
        if required:
            fn["parameters"]["required"] = required
        out.append({"type": "function", "function": fn})
    return out


def value(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, float):
        return "%g" % v
    if isinstance(v, list):
        return " / ".join(map(str, v))
    return str(v)


def now(home, here=None, only=None, states=True):
    """The second system message; with @only, the entities that changed."""
    c = home.clock
    out = ["Now: %s %d %s, %s" % (c.strftime("%A"), c.day, c.strftime("%B %Y"), c.strftime("%H:%M"))]
    if here and only is None:
        out.append("Here: " + here)
    for area in [*home.areas, None]:
        parts = []
        for e in home.entities:
            if e.area != (area.name if area else None) or "state" not in e.state or (only is not None and e not in only) or not states:
                continue
            parts.append("%s = %s" % (e.name, ", ".join([e.state["state"]] + [
                "%s %s" % (k, value(v)) for k, v in e.state.items() if k != "state"])))
        if parts:
            out.append("%s: %s" % (area.name if area else "No area", "; ".join(parts)))
    return "\n".join(out)


THINK = "<think>\n\n</think>\n\n"


def tools_block(ts):
    return ("# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n<tools>"
            + "".join("\n" + json.dumps(t, ensure_ascii=False) for t in ts)
            + "\n</tools>\n\nFor each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>")


def calls_text(calls):
    return "\n".join('<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>' % (n, json.dumps(a, ensure_ascii=False)) for n, a in calls)


def segments(messages, ts, think=lambda last: last):
    """The conversation as the template writes it: [(text, is it the model's)].

    messages: ("system"|"user"|"assistant"|"tool", text) or ("calls", [(name, args)]).
    think(last): whether an assistant turn opens with the empty think block.
    """
    out = []
    first = True
    for i, (role, body) in enumerate(messages):
        if first and ts:
            out.append(("<|im_start|>system\n%s\n\n%s<|im_end|>\n" % (body, tools_block(ts)), False))
            first = False
            continue
        first = False
        if role in ("system", "user"):
            out.append(("<|im_start|>%s\n%s<|im_end|>\n" % (role, body), False))
        elif role == "tool":
            head = "<|im_start|>user" if messages[i - 1][0] != "tool" else ""
            tail = "<|im_end|>\n" if i + 1 == len(messages) or messages[i + 1][0] != "tool" else ""
            out.append((head + "\n<tool_response>\n" + body + "\n</tool_response>" + tail, False))
        else:
            last = i + 1 == len(messages)
            out.append(("<|im_start|>assistant\n" + (THINK if think(last) else ""), False))
            out.append(((calls_text(body) if role == "calls" else body) + "<|im_end|>", True))
            out.append(("\n", False))
    return out


def generation_prompt(messages, ts):
    return "".join(t for t, _ in segments(messages, ts, lambda last: False)) + "<|im_start|>assistant\n" + THINK
