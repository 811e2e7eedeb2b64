# SPDX-License-Identifier: MIT
"""A home in memory: its file, its state, and what each tool call does to it.

The file format and the answers of the tools are those of runtime/home/home.h.
Only the standard library is used, the YAML reader below included: it knows the
part of YAML that home files use (block maps and lists, one-line flow lists and
maps, quotes, comments) and refuses the rest.
"""
import copy
import datetime
import json
import re

DOMAINS = ["light", "switch", "fan", "cover", "climate", "lock", "media_player", "vacuum", "scene", "script",
           "todo", "sensor", "binary_sensor", "lawn_mower"]
SWITCHABLE = {"light", "switch", "fan", "cover", "climate", "lock", "media_player", "scene", "script"}


# -- the YAML part ------------------------------------------------------------

class YamlError(ValueError):
    pass


def _scalar(text):
    t = text.strip()
    if t[:1] in "\"'":
        if len(t) < 2 or t[-1] != t[0]:
            raise YamlError("open quote: " + text)
        return t[1:-1].replace("''", "'") if t[0] == "'" else json.loads(t)
    if t in ("", "~", "null"):
        return None
    if t in ("true", "false"):
        return t == "true"
    if re.fullmatch(r"-?\d+", t):
        return int(t)
    if re.fullmatch(r"-?\d+\.\d+", t):
        return float(t)
    return t


def _flow(text):
    """A one-line value: flow list, flow map or scalar."""
    t = text.strip()
    if t[:1] not in "[{":
        return _scalar(t)
    parts, depth, quote, cur = [], 0, "", ""
    for ch in t[1:-1]:
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "\"'":
            quote = ch
        elif ch in "[{":
            depth += 1
        elif ch in "]}":
            depth -= 1
        if ch == "," and not depth and not quote:
            parts.append(cur)
            cur = ""
        else:
            cur += ch
    if cur.strip():
        parts.append(cur)
    if t[0] == "[":
        return [_flow(p) for p in parts]
    out = {}
    for p in parts:
        k, sep, v = p.partition(":")
        if not sep:
            raise YamlError("no colon in " + p)
        out[_scalar(k)] = _flow(v)
    return out


def _strip_comment(line):
    quote = ""
    for i, ch in enumerate(line):
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "\"'" and (i == 0 or line[i - 1] in " [{,:"):
            quote = ch
        elif ch == "#" and (i == 0 or line[i - 1] == " "):
            return line[:i].rstrip()
    return line.rstrip()


def parse_yaml(text):
    lines = []
    for raw in text.splitlines():
        s = _strip_comment(raw)
        if s.strip() and s.strip() != "---":
            if "\t" in s[:len(s) - len(s.lstrip())]:
                raise YamlError("tab in indentation")
            lines.append([len(s) - len(s.lstrip()), s.strip()])

    def block(i, indent):
        if lines[i][1].startswith("- ") or lines[i][1] == "-":
            out = []
            while i < len(lines) and lines[i][0] == indent and lines[i][1][:1] == "-":
                rest = lines[i][1][1:].strip()
                if not rest:
                    v, i = block(i + 1, lines[i + 1][0])
                elif rest[0] not in "[{\"'" and re.match(r"[^\s:]+:(\s|$)", rest):
                    pad = indent + len(lines[i][1]) - len(lines[i][1][1:].lstrip())
                    lines[i] = [pad, rest]
                    v, i = block(i, pad)
                else:
                    v, i = _flow(rest), i + 1
                out.append(v)
            return out, i
        out = {}
        while i < len(lines) and lines[i][0] == indent:
            k, sep, v = lines[i][1].partition(":")
            if not sep:
                raise YamlError("no colon: " + lines[i][1])
            if v.strip():
                out[_scalar(k)], i = _flow(v), i + 1
            elif i + 1 < len(lines) and (lines[i + 1][0] > indent or
                                         (lines[i + 1][0] == indent and lines[i + 1][1][:1] == "-")):
                out[_scalar(k)], i = block(i + 1, lines[i + 1][0])
            else:
                out[_scalar(k)], i = None, i + 1
        if i < len(lines) and lines[i][0] > indent:
            raise YamlError("indentation: " + lines[i][1])
        return out, i

    if not lines:
        return None
    v, i = block(0, lines[0][0])
    if i != len(lines):
        raise YamlError("left over: " + lines[i][1])
    return v


# -- the home -----------------------------------------------------------------

class Entity:
    __slots__ = ("name", "aliases", "domain", "cls", "area", "state")

    def __init__(self, name, domain, area=None, cls="", aliases=(), state=None):
        self.name, self.domain, self.area, self.cls = name, domain, area, cls
        self.aliases = list(aliases)
        self.state = dict(state or {})     # "state" first, then the attributes

    def clone(self):
        return Entity(self.name, self.domain, self.area, self.cls, self.aliases, copy.deepcopy(self.state))


class Area:
    __slots__ = ("name", "floor", "aliases")

    def __init__(self, name, floor=None, aliases=()):
        self.name, self.floor, self.aliases = name, floor, list(aliases)


class Home:
    def __init__(self):
        self.floors = []        # [(name, aliases)]
        self.areas = []
        self.entities = []
        self.unit = "celsius"
        self.clock = datetime.datetime(2026, 11, 29, 18, 30)
        self.timers = []        # [{"name", "seconds", "left", "state"}]

    def clone(self):
        h = Home()
        h.floors, h.areas, h.unit, h.clock = self.floors, self.areas, self.unit, self.clock
        h.entities = [e.clone() for e in self.entities]
        h.timers = copy.deepcopy(self.timers)
        return h

    def area(self, name):
        return next((a for a in self.areas if a.name == name), None)

    def of(self, domain=None, area=None, floor=None, cls=None):
        out = []
        for e in self.entities:
            if domain and e.domain != domain or area and e.area != area or cls and e.cls != cls:
                continue
            if floor:
                a = self.area(e.area)
                if not a or a.floor != floor:
                    continue
            out.append(e)
        return out

    def domains(self):
        return {e.domain for e in self.entities}


# attributes of each domain in the order in which they are told
ATTRS = ["brightness", "color", "color_temp", "percentage", "position", "temperature", "current_temperature", "volume", "muted",
         "media_title", "unit", "items"]
_KNOWN = {"name", "aliases", "domain", "device_class", "area", "state"} | set(ATTRS)


def from_tree(tree):
    h = Home()
    h.unit = tree.get("temperature_unit") or "celsius"
    for f in tree.get("floors") or []:
        h.floors.append((f["name"], f.get("aliases") or []))
    for a in tree.get("areas") or []:
        if isinstance(a, str):
            a = {"name": a}
        h.areas.append(Area(a["name"], a.get("floor"), a.get("aliases") or []))
        if a.get("floor") and a["floor"] not in [f[0] for f in h.floors]:
            h.floors.append((a["floor"], []))
    for e in tree.get("entities") or []:
        unknown = set(e) - _KNOWN
        if unknown:
            raise YamlError("%s: unknown key %s" % (e.get("name"), sorted(unknown)[0]))
        st = {}
        if e.get("state") is not None:
            s = e["state"]
            st["state"] = s if isinstance(s, str) else {True: "on", False: "off"}[s] if isinstance(s, bool) else str(s)
        for k in ATTRS:
            if e.get(k) is not None:
                st[k] = e[k]
        if e["domain"] == "todo" and "state" not in st:
            st = {"state": str(len(st.get("items", []))), **st}
        h.entities.append(Entity(str(e["name"]), e["domain"], e.get("area"), e.get("device_class") or "", [str(a) for a in e.get("aliases") or []], st))
    if tree.get("clock"):
        h.clock = datetime.datetime.strptime(str(tree["clock"]), "%Y-%m-%dT%H:%M")
    return h


def load(path):
    with open(path, encoding="utf-8") as f:
        return from_tree(parse_yaml(f.read()))


# -- what tool calls do -------------------------------------------------------

def dumps(x):
    return json.dumps(x, ensure_ascii=False, separators=(",", ":"))


def targets(home, a, domains):
    """The entities that name, area, floor, domain and device_class select."""
    out = []
    for e in home.entities:
        if e.domain not in domains:
            continue
        if "domain" in a and e.domain != a["domain"] or "device_class" in a and e.cls != a["device_class"]:
            continue
        if "name" in a and e.name != a["name"] or "area" in a and e.area != a["area"]:
            continue
        if "floor" in a:
            ar = home.area(e.area)
            if not ar or ar.floor != a["floor"]:
                continue
        out.append(e)
    if "name" not in a and "domain" not in a and out and domains is SWITCHABLE:
        out = [e for e in out if e.domain in ("light", "switch", "fan", "media_player")]
    return out


def _set(e, **kv):
    before = dict(e.state)
    for k, v in kv.items():
        if v is None:
            e.state.pop(k, None)
        else:
            e.state[k] = v
    order = ["state"] + ATTRS
    e.state = {k: e.state[k] for k in order if k in e.state}
    return before != e.state


def _onoff(e, on):
    d = e.domain
    if d == "cover":
        return _set(e, state="open" if on else "closed", position=100 if on else 0)
    if d == "lock":
        return _set(e, state="locked" if on else "unlocked")
    if d == "climate":
        return _set(e, state="heat" if on and e.state.get("state") == "off" else e.state.get("state") if on else "off")
    if d in ("scene", "script"):
        return True
    if d == "fan":
        if on and e.state.get("state") == "on":
            return False
        return _set(e, state="on" if on else "off", percentage=(100 if on else 0) if "percentage" in e.state else None)
    if d == "media_player" and on and e.state.get("state") in ("playing", "paused", "idle", "on"):
        return False
    return _set(e, state="on" if on else "off")


def _timer_match(home, a):
    start = a.get("start_hours", 0) * 3600 + a.get("start_minutes", 0) * 60 + a.get("start_seconds", 0)
    out = [t for t in home.timers if ("name" not in a or t["name"] == a["name"]) and (not start or t["seconds"] == start)]
    return out


def call(home, tool, a):
    """Carries out one call; returns (result object, entities that changed)."""
    def fail(msg):
        return {"success": False, "error": msg}, []

    def act(domains, fn):
        ts = targets(home, a, domains)
        if not ts:
            return fail("no device called \"%s\"" % a["name"] if "name" in a else "no matching device")
        if any(e.state.get("state") == "unavailable" for e in ts) and len(ts) == 1:
            return fail("%s is not available" % ts[0].name)
        done = [e for e in ts if fn(e)]
        r = {"success": True, "changed": [dict([("name", e.name)] + [(k, v) for k, v in e.state.items() if k == "state"]) for e in done]}
        if not done:
            r["already"] = [e.name for e in ts]
        return r, done

    if tool in ("HassTurnOn", "HassTurnOff"):
        return act(SWITCHABLE, lambda e: _onoff(e, tool == "HassTurnOn"))
    if tool == "HassLightSet":
        kv = {"state": "on"}
        for slot, key in (("brightness", "brightness"), ("color", "color"), ("temperature", "color_temp")):
            if slot in a:
                kv[key] = a[slot]
        if "color" in a:
            kv["color_temp"] = None
        if "temperature" in a:
            kv["color"] = None
        if a.get("brightness") == 0:
            kv = {"state": "off"}
        return act({"light"}, lambda e: _set(e, **kv))
    if tool == "HassSetPosition":
        p = a["position"]
        return act({"cover"}, lambda e: _set(e, state="open" if p else "closed", position=p))
    if tool == "HassFanSetSpeed":
        p = a["percentage"]
        return act({"fan"}, lambda e: _set(e, state="on" if p else "off", percentage=p))
    if tool == "HassClimateSetTemperature":
        return act({"climate"}, lambda e: _set(e, temperature=a["temperature"], state="heat" if e.state.get("state") == "off" else e.state.get("state")))
    if tool == "HassSetVolume":
        return act({"media_player"}, lambda e: _set(e, volume=a["volume_level"]))
    if tool == "HassSetVolumeRelative":
        return act({"media_player"}, lambda e: _set(e, volume=max(0, min(100, e.state.get("volume", 30) + a["volume_step"]))))
    if tool in ("HassMediaPause", "HassMediaUnpause"):
        return act({"media_player"}, lambda e: _set(e, state="paused" if tool == "HassMediaPause" else "playing"))
    if tool in ("HassMediaNext", "HassMediaPrevious"):
        return act({"media_player"}, lambda e: _set(e, state="playing", media_title=None) or True)
    if tool in ("HassMediaPlayerMute", "HassMediaPlayerUnmute"):
        return act({"media_player"}, lambda e: _set(e, muted=True if tool == "HassMediaPlayerMute" else None))
    if tool == "HassMediaSearchAndPlay":
        return act({"media_player"}, lambda e: _set(e, state="playing", media_title=a["search_query"]) or True)
    if tool == "HassVacuumStart":
        return act({"vacuum"}, lambda e: _set(e, state="cleaning"))
    if tool == "HassVacuumReturnToBase":
        return act({"vacuum"}, lambda e: _set(e, state="returning"))
    if tool == "HassVacuumCleanArea":
        vs = home.of("vacuum")
        if not vs:
            return fail("no vacuum")
        _set(vs[0], state="cleaning")
        return {"success": True, "changed": [{"name": vs[0].name, "state": "cleaning"}]}, [vs[0]]
    if tool == "HassLawnMowerStartMowing":
        return act({"lawn_mower"}, lambda e: _set(e, state="mowing"))
    if tool == "HassLawnMowerDock":
        return act({"lawn_mower"}, lambda e: _set(e, state="docked"))
    if tool in ("HassListAddItem", "HassListCompleteItem", "HassListRemoveItem"):
        ls = [e for e in home.of("todo") if e.name == a.get("name")]
        if not ls:
            return fail("no list called \"%s\"" % a.get("name"))
        items = list(ls[0].state.get("items", []))
        if tool == "HassListAddItem":
            items.append(a["item"])
        elif a["item"] in items:
            items.remove(a["item"])
        else:
            return fail("\"%s\" is not on %s" % (a["item"], ls[0].name))
        _set(ls[0], state=str(len(items)), items=items)
        return {"success": True, "list": ls[0].name, "item": a["item"]}, [ls[0]]
    if tool == "HassStartTimer":
        s = a.get("hours", 0) * 3600 + a.get("minutes", 0) * 60 + a.get("seconds", 0)
        t = {"name": a.get("name", ""), "seconds": s, "left": s, "state": "running"}
        home.timers.append(t)
        return {"success": True, "timers": [dict(t)]}, []
    if tool in ("HassCancelTimer", "HassPauseTimer", "HassUnpauseTimer", "HassIncreaseTimer", "HassDecreaseTimer", "HassTimerStatus"):
        ts = _timer_match(home, a)
        if tool == "HassTimerStatus":
            return {"success": True, "timers": [dict(t) for t in ts]}, []
        if not ts:
            return fail("no such timer" if home.timers else "no timer is running")
        t = ts[-1]
        d = a.get("hours", 0) * 3600 + a.get("minutes", 0) * 60 + a.get("seconds", 0)
        if tool == "HassCancelTimer":
            home.timers.remove(t)
            t["state"] = "cancelled"
        elif tool == "HassPauseTimer":
            t["state"] = "paused"
        elif tool == "HassUnpauseTimer":
            t["state"] = "running"
        else:
            t["left"] = max(0, t["left"] + (d if tool == "HassIncreaseTimer" else -d))
        return {"success": True, "timers": [dict(t)]}, []
    if tool == "HassCancelAllTimers":
        n = len(home.timers)
        home.timers = []
        return {"success": True, "cancelled": n}, []
    if tool == "HassBroadcast":
        return {"success": True}, []
    if tool == "GetLiveContext":
        ts = targets(home, {k: v for k, v in a.items() if k in ("name", "area", "domain")}, set(DOMAINS))
        ts = [e for e in ts if "state" in e.state]
        if not ts:
            return fail("no device called \"%s\"" % a["name"] if "name" in a else "no matching device")
        return {"success": True, "states": [dict([("name", e.name)] + list(e.state.items())) for e in ts]}, []
    if tool == "GetDateTime":
        c = home.clock
        return {"success": True, "date": c.strftime("%Y-%m-%d"), "weekday": c.strftime("%A"), "time": c.strftime("%H:%M")}, []
    return fail("no tool called \"%s\"" % tool)
