# SPDX-License-Identifier: MIT
"""Evaluation cases: a conversation up to the point where the model must speak, and what is right there.

A case file is JSON lines. {"context": id, "tools": [...], "messages": [...]} gives a
conversation; {"case": ..., "context": id, "at": n, "expect": {...}, "intent": ..., "noisy": bool}
asks what the model says after the first n messages. Messages are as chat
templates take them. What is expected:

    {"calls": [{"name": ..., "arguments": {...}}]}    exactly these, in this order; or, with "or": [[...], ...], one of those
    {"ask": [words]}     no call; a question that has each word
    {"no": 1}            no call; says that it is not there or cannot be
    {"say": [[a, b]]}    no call; has a or b, for each group
    {"chat": 1}          no call; some text
"""
import json
import os
import random
import re

import asks
import house
import prompt
import which
from talk import Talk

HERE = os.path.dirname(os.path.abspath(__file__))
NEGATIVE = re.compile(r"\b(no|not|none|nothing|cannot|never|unable|sorry)\b|n't\b", re.I)


def plain(messages):
    """The generator's messages as a chat template takes them."""
    out = []
    for role, body in messages:
        if role == "calls":
            out.append({"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": {"name": n, "arguments": a}} for n, a in body]})
        else:
            out.append({"role": role, "content": body})
    return out


def expect_json(e):
    one = lambda calls: [{"name": n, "arguments": a} for n, a in calls]
    if "calls" not in e:
        return e
    return {"calls": one(e["calls"]), **({"or": [one(c) for c in e["or"]]} if "or" in e else {})}


class Case:
    __slots__ = ("messages", "tools", "intent", "expect", "noisy", "id")

    def __init__(self, messages, tools, intent, expect, noisy, id):
        self.messages, self.tools, self.intent, self.expect, self.noisy, self.id = messages, tools, intent, expect, noisy, id

    def prompt(self):
        return prompt.generation_prompt(self.messages, self.tools)


def from_talk(k, tag, first=False):
    out = []
    for i, t in enumerate(k.turns):
        out.append(Case(k.messages[:t["at"] + 1], k.tools, t["intent"], t["expect"], not t["clean"], "%s/%d" % (tag, i)))
    return out


# -- the hand-written set -----------------------------------------------------

def _value(v):
    return int(v) if re.fullmatch(r"-?\d+", v) else float(v) if re.fullmatch(r"-?\d+\.\d+", v) else v


TEXT_SLOTS = {"name", "area", "floor", "domain", "device_class", "item", "message", "search_query", "conversation_command", "media_class", "color"}


def parse_expect(s):
    w = s.split(" ", 1)
    rest = w[1] if len(w) > 1 else ""
    if w[0] == "ask":
        return {"ask": [x.strip() for x in rest.split("/")]}
    if w[0] in ("no", "chat"):
        return {w[0]: 1}
    if w[0] == "say":
        return {"say": [[x.strip() for x in grp.split(" / ")] for grp in rest.split(" & ")]}
    if " || " in s:
        first, *rest = [parse_expect(x)["calls"] for x in s.split(" || ")]
        return {"calls": first, "or": rest}
    calls = []
    for c in s.split(" | "):
        n, _, a = c.strip().partition(" ")
        args = {}
        for kv in filter(None, (x.strip() for x in a.split(";"))):
            key, _, v = kv.partition("=")
            args[key] = v if key in TEXT_SLOTS else _value(v)
        calls.append((n, args))
    return {"calls": calls}


def hand(path=None):
    """The cases of eval/hand.txt."""
    path = path or os.path.join(HERE, "eval", "hand.txt")
    home, here, live, out, k, n = None, "", True, [], None, 0
    pending = None
    with open(path, encoding="utf-8") as f:
        for num, line in enumerate(f, 1):
            s = line.strip()
            if s.startswith("#"):
                continue
            if not s:
                k = None
                continue
            key, _, rest = s.partition(" ")
            if key == "home":
                home = house.load(os.path.join(os.path.dirname(path), "homes", rest + ".yaml"))
                here, live = "", True
            elif key == "here":
                here = "" if rest == "-" else rest
            elif key == "live":
                live = rest == "on"
            elif key == "u:":
                pending = rest
            elif key == "a:":
                if k is None:
                    k = Talk(random.Random(0), home=home.clone(), noisy=0, live=live, here=here, variety=False)
                e = parse_expect(rest)
                k.clean = True
                k.tell()
                k.user(intent_of(e), pending, e)
                out.append(Case(list(k.messages), k.tools, intent_of(e), e, False, "hand/%d" % num))
                if "calls" in e:
                    k.messages.append(("calls", e["calls"]))
                    for nm, a in e["calls"]:
                        res, ch = house.call(k.home, nm, a)
                        k.changed += [x for x in ch if x not in k.changed]
                        k.messages.append(("tool", house.dumps(res)))
                    ok = res.get("success")
                    k.reply("Done." if ok else "Sorry, %s." % res["error"])
                else:
                    k.reply({"ask": "Which one?", "no": "Sorry, I can't do that.", "chat": "Okay."}.get(next(iter(e)), "Yes."))
            else:
                raise ValueError("%s:%d: %s" % (path, num, s))
    return out


def intent_of(e):
    if "calls" in e:
        return e["calls"][0][0]
    return {"ask": "which", "no": "no device", "say": "question", "chat": "chat"}[next(iter(e))]


# -- generated sets -----------------------------------------------------------

def generated(kind, n, noisy, seed="eval"):
    """@kind homes: unseen homes and names; templates: unseen templates, ordinary made-up homes (also new); which: unseen
    homes where names share words and rooms share names, and only requests that this makes hard."""
    out, i = [], 0
    plan = ([which.several_here, which.which_one, which.here_decides, which.lone], [3, 1, 1, 1]) if kind == "which" else None
    while len(out) < n:
        rng = random.Random("%s %s %d" % (seed, kind, i))
        k = Talk(rng, held=kind == "templates", held_names=kind != "templates", noisy=1.0 if noisy else 0.0, variety=False, hard=kind == "which")
        k.spoken = noisy or rng.random() < 0.7
        asks.converse(k, 4, plan)
        out += [c for c in from_talk(k, "%s/%d" % (kind, i)) if c.noisy == noisy]
        i += 1
    return out[:n]


# -- scoring ------------------------------------------------------------------

CALL = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.S)


def parse_calls(text):
    """[(name, args)] or None when a call is malformed."""
    out = []
    for m in CALL.findall(text):
        try:
            d = json.loads(m)
            out.append((d["name"], d["arguments"]))
        except (ValueError, KeyError, TypeError):
            return None
    if text.count("<tool_call>") != len(out):
        return None
    return out


def right(expect, text):
    calls = parse_calls(text)
    if calls is None:
        return False
    if "calls" in expect:
        return any([(n, a) for n, a in calls] == [(n, a) for n, a in w] for w in [expect["calls"], *expect.get("or", [])])
    if calls:
        return False
    low = text.lower()
    if "ask" in expect:
        return "?" in text and all(x.lower() in low or (x == "room" and "which one" in low) for x in expect["ask"])
    if "no" in expect:
        return bool(NEGATIVE.search(text))
    if "say" in expect:
        return all(any(re.search(r"(?<![\w.])%s(?![\w])" % re.escape(x.lower()), low) for x in grp) for grp in expect["say"])
    return bool(text.strip())


def invented(case, text):
    """Whether a call names a device, room or floor that is not in the catalogue."""
    calls = parse_calls(text)
    if not calls:
        return False
    sysm = case.messages[0][1]
    devs = set(re.findall(r"^- (.*?)(?: \([^()]*\))?: ", sysm, re.M))
    areas = set(re.findall(r"^([^-\n].*?)(?: \([^()]*\))?(?:, [^,:\n()]*)?:$", sysm, re.M))
    for n, a in calls:
        if n in ("HassStartTimer", "HassCancelTimer", "HassIncreaseTimer", "HassDecreaseTimer", "HassPauseTimer", "HassUnpauseTimer", "HassTimerStatus"):
            continue
        if "name" in a and a["name"] not in devs or "area" in a and a["area"] not in areas:
            return True
    return False


def score(cs, got):
    """({intent or group: [right, all]}, [what was wrong])"""
    by, wrong = {}, []
    for c, g in zip(cs, got):
        ok = right(c.expect, g)
        for key in (c.intent, "all", *("=" + x for x in ("calls", "ask", "no", "say", "chat") if x in c.expect)):
            a = by.setdefault(key, [0, 0])
            a[0] += ok
            a[1] += 1
        inv = by.setdefault("invented", [0, 0])
        inv[0] += invented(c, g)
        inv[1] += 1
        if not ok:
            wrong.append({"id": c.id, "intent": c.intent, "user": c.messages[-1][1], "expect": expect_json(c.expect), "got": g})
    return by, wrong


def line(name, by):
    pc = lambda k: "%.1f" % (100 * by[k][0] / by[k][1]) if k in by else "-"
    return "eval %-16s n %4d all %s calls %s ask %s no %s say %s invented %s" % (name, by["all"][1], pc("all"), pc("=calls"), pc("=ask"), pc("=no"), pc("=say"), pc("invented"))


def write(path, cases):
    """One file of cases for `hearth eval-home`; conversations are shared by their turns."""
    with open(path, "w", encoding="utf-8") as f:
        for c in cases:
            f.write(json.dumps({"case": c.id, "intent": c.intent, "noisy": c.noisy, "expect": expect_json(c.expect), "tools": c.tools, "messages": plain(c.messages)}, ensure_ascii=False) + "\n")


def main():
    import argparse
    ap = argparse.ArgumentParser(description="Writes evaluation cases for `hearth eval-home`.")
    ap.add_argument("do", choices=["write"])
    ap.add_argument("set", choices=["hand", "homes", "homes-noisy", "templates", "templates-noisy", "which", "which-noisy"])
    ap.add_argument("file")
    ap.add_argument("--n", type=int, default=500, help="cases of a generated set (500)")
    a = ap.parse_args()
    kind, _, noisy = a.set.partition("-")
    write(a.file, hand() if kind == "hand" else generated(kind, a.n, bool(noisy)))


if __name__ == "__main__":
    main()
