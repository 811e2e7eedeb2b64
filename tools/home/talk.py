# SPDX-License-Identifier: MIT
"""Conversations with a made-up home: what people say, which calls are right, what is answered.

A Talk holds one conversation with one home. Each exchange adds the user's
words, the right calls, what the simulated home returns and a short answer, and
leaves in `turns` what evaluation needs: where the user's words are, and what
is expected there.
"""
import datetime
import re

import house
import homes
import noise
import prompt
import templates
import words as W
from refer import GENERIC, KIND, Refs, Target, names, norm

ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "x x twenty thirty forty fifty sixty seventy eighty ninety".split()


def num_words(n):
    if n < 0:
        return "minus " + num_words(-n)
    if isinstance(n, float) and n != int(n):
        a, b = ("%g" % n).split(".")
        return num_words(int(a)) + " point " + " ".join(ONES[int(c)] for c in b)
    n = int(n)
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (" " + ONES[n % 10] if n % 10 else "")
    if n < 1000:
        return (ONES[n // 100] + " hundred") + (" " + num_words(n % 100) if n % 100 else "")
    return num_words(n // 1000) + " thousand" + (" " + num_words(n % 1000) if n % 1000 else "")


def and_list(xs):
    xs = list(xs)
    return ", ".join(xs) if len(xs) < 2 else ", ".join(xs[:-1]) + " and " + xs[-1]


def or_list(xs):
    xs = list(xs)
    return xs[0] if len(xs) == 1 else ", ".join(xs[:-1]) + " or " + xs[-1]


def the(name):
    return name if re.match(r"(the|my) |.*'s ", name.lower()) else "the " + name


def g(v):
    return "%g" % v if isinstance(v, float) else str(v)


def clock_words(c):
    h = c.hour % 12 or 12
    return "%d:%02d %s" % (h, c.minute, "am" if c.hour < 12 else "pm")


ONE_OF = {"speaker", "stereo", "player", "thermostat", "heater"}       # one device, where "the music" and "the heat" are the room's
FRACTIONS = {33: ("a third", "one third", "a third of the way"), 67: ("two thirds", "two thirds of the way"), 20: ("a fifth",), 10: ("a tenth", "ten"), 75: ("three quarters of the way",), 25: ("a quarter of the way", "one quarter")}
PLURAL = re.compile(r"(s|leds)$")
UNCOUNT = re.compile(r"(ss|us|is|glass)$")


def is_plural(name):
    w = name.lower().split()[-1] if name.split() else ""
    return bool(PLURAL.search(w)) and not UNCOUNT.search(w) and "'" not in w


# what starts so is no verb: no "could you" goes before it
VERBLESS = re.compile(r"(on|off|lights?|louder|quieter|softer|volume|music|sound|next|previous|last|timer|alarm|another|not|no|more|less|brightness|everything|all|temperature|back|one|the|a|\d+)\b")
_LIGHT = re.compile(r"\(?(hey|okay|ok|now|so|well|um|uh|er|oh|alright|right|listen|computer|house|assistant|hearth|alexa|yo|quick|please|and|then)\b(?!.*\b(you|to)\b)|\{x\}")


def any_words(r, most=4, errand=True):
    """What somebody may want on a list or said to the house, to be copied as it is: an errand, or words that go together by chance. None: none now."""
    if r.random() < 0.45:
        thing = r.choice(W.THINGS) if r.random() < 0.7 else r.choice(W.ITEMS)
        if not errand or r.random() < 0.3:
            return (r.choice(("", "", "a", "a new", "some", "another", "the", "more", "two", "a spare")) + " " + thing).strip()
        return r.choice(W.ERRANDS) + " " + r.choice(("the ", "the ", "the ", "", "my ", "a new ", "grandma's ", "the old ")) + thing + r.choice(("", "", "", "", " tomorrow", " this week", " for the kids", " again", " before noon", " with tom"))
    pool = r.choice((W.ITEMS, W.TASKS, W.REMINDERS, W.MESSAGES, W.SONGS, W.TIMERS))
    ws = [w for _ in range(3) for w in r.choice(pool).split()] + r.choice(W.WHIMSY).lower().split()
    out = r.sample(ws, min(len(ws), r.randint(1, most)))
    if r.random() < 0.25:
        out.insert(r.randrange(len(out) + 1), homes.made_up(r).lower())
    if r.random() < 0.2:
        out = r.choice(("a pint of", "two tins of", "some", "a jar of", "half a dozen", "a bit of", "three", "a new", "more", "a roll of", "a tube of", "one of those")).split() + out
    while len(out) > 1 and out[-1] in ("and", "the", "a", "of", "to", "in", "on", "for", "my", "with", "at", "is"):
        out.pop()
    if {"and", "plus", "on", "to", "list", "then", "please"} & set(out):      # these end an item
        return None
    return " ".join(out)


class LIGHT:
    """Wrappings that fit words without a verb."""

    @staticmethod
    def match(line):
        return bool(_LIGHT.match(line.text)) and not re.search(r"would you|will you|again", line.text)


class Skip(Exception):
    """This exchange does not fit this home or this moment: draw another."""


class Style:
    def __init__(self, rng, spoken):
        self.spoken = spoken
        self.digits = rng.random() < (0.15 if spoken else 0.8)
        self.typed = not spoken and rng.random() < 0.6


class Talk:
    """One conversation. held: words come from the held-out template lines."""

    def __init__(self, rng, home=None, held=False, held_names=False, noisy=0.35, live=None, here=None, size=None, variety=True, hard=False, tools=None):
        self.rng = r = rng
        self.home = home or homes.make_home(r, held_names, size, hard)
        self.refs = Refs(self.home)
        self.held, self.noisy, self.hard = held, noisy, hard
        self.live = (r.random() < 0.8) if live is None else live
        self.deltas = r.random() < 0.55 or not variety      # nobody learns to say what is told: half of the conversations without it have more to learn from
        self.here = here if here is not None else (r.choice(self.home.areas).name if r.random() < 0.75 else None)
        if self.here and r.random() < 0.7 and here is None:    # mostly a room with something in it
            self.here = r.choice([e.area for e in self.home.entities if e.area] or [self.here])
        if here is None and self.here and r.random() < 0.3:    # a room where "here" decides something
            seen = {}
            for e in self.home.entities:
                seen.setdefault(norm(e.name), []).append(e)
            opts = [e.area for v in seen.values() if len(v) > 1 for e in v if e.area] + [e.area for d in ("media_player", "climate", "fan", "cover") if len(self.home.of(d)) > 1 for e in self.home.of(d) if e.area]
            if opts:
                self.here = r.choice(opts)
        if hard and here is None and self.here and r.random() < 0.45:      # a room where several things share a word
            opts = []
            for a in self.home.areas:
                ws = [w for e in self.home.of(area=a.name) for w in set(norm(e.name).split()) & W.ALIKE.keys()]
                opts += [a.name] if len(ws) > len(set(ws)) else []
            if opts:
                self.here = r.choice(opts)
        if self.here == "":
            self.here = None
        for e in self.home.of("todo") if hard else ():
            if "items" in e.state and r.random() < 0.5:
                e.state["items"] = list(dict.fromkeys(any_words(r) or i for i in e.state["items"]))
                e.state["state"] = str(len(e.state["items"]))
        self.tools = tools or prompt.tools(self.home, variety and r.random() < 0.06)
        if not tools and variety and r.random() < 0.75:          # not everybody offers everything
            drop = set()
            for grp in (("Timer",), ("Broadcast",), ("List",), ("Media", "Volume"), ("Vacuum", "Mower"), ("DateTime",), ("Climate",), ("Fan",)):
                if r.random() < 0.5:
                    drop.update(t["function"]["name"] for t in self.tools if any(x in t["function"]["name"] for x in grp))
            self.tools = [t for t in self.tools if t["function"]["name"] not in drop]
            if r.random() < 0.3:
                r.shuffle(self.tools)
        self.has = {t["function"]["name"] for t in self.tools}
        self.messages = [("system", prompt.system(self.home))]
        if self.live:
            self.messages.append(("system", prompt.now(self.home, self.here)))
        elif self.here:
            self.messages.append(("system", "Here: " + self.here))
        self.told = self.home.clock
        self.changed = []
        self.turns = []
        self.last = None            # the last action, for what refers back
        self.result_form = r.choice((0, 0, 0, 1, 1, 2)) if variety else 0
        self.spoken = r.random() < 0.72

    # -- words ----------------------------------------------------------------
    def style(self):
        return Style(self.rng, self.spoken if self.rng.random() < 0.9 else not self.spoken)

    def article(self, n):
        x = self.rng.random()
        if norm(n).startswith(("the ", "my ", "our ")):
            return n
        return "the " + n if x < 0.62 else "my " + n if x < 0.7 else "our " + n if x < 0.73 else "this " + n if x < 0.735 else n

    def spoken_name(self, n):
        n = n.lower()
        if not self.st.spoken and self.rng.random() >= 0.5:
            return n
        n = re.sub(r"(?<=[a-zà-ÿ])(?=\d)|(?<=\d)(?=[a-zà-ÿ])", " ", n.replace("-", " ").replace("&", "and"))
        return re.sub(r"\d+", lambda m: num_words(int(m.group())) if len(m.group()) < 4 else " ".join(ONES[int(c)] for c in m.group()), n)

    def area_say(self, area):
        a = self.home.area(area)
        if a and a.aliases and self.rng.random() < 0.35:
            return self.spoken_name(self.rng.choice(a.aliases))
        return self.spoken_name(area)

    def in_area(self, area):
        r = self.rng
        n = self.area_say(area)
        prep = "on" if n.split()[-1] in ("balcony", "terrace", "patio", "porch", "deck", "roof", "landing", "driveway", "veranda") and r.random() < 0.7 else "in"
        return "%s %s" % (prep, n if re.search(r"'s |^(upstairs|downstairs|outside)", n) or r.random() < 0.2 else "the " + n)

    def room_say(self, area):
        n = self.area_say(area)
        return n if "'s " in n or self.rng.random() < 0.15 else "the " + n

    def ent_say(self, e, bare=False):
        """A phrase that means this entity and no other (checked), or Skip."""
        r, refs = self.rng, self.refs
        if e.area and norm(e.name).startswith(norm(e.area) + " ") and r.random() < 0.2:     # the blind in the kitchen
            n = self.spoken_name(e.name[len(e.area) + 1:])
            if refs.match(n, e.area) == [e]:
                return (n if bare else self.article(n)) + " " + self.in_area(e.area)
        if e.cls == "garage" and e.domain == "cover" and len(self.home.of("cover", cls="garage")) == 1 and r.random() < 0.25 and not any(norm(x) == "garage" for o in self.home.entities if o is not e for x in names(o)):
            return "garage" if bare else "the garage"
        for _ in range(6):
            x, where = r.random(), None
            if x < 0.62 or not e.aliases and x < 0.75:
                n = e.name
            elif x < 0.8 and e.aliases:
                n = r.choice(e.aliases)
            else:                                       # part of the name
                ws = e.name.split()
                if len(ws) < 2:
                    continue
                k = r.randrange(1, len(ws))
                n = " ".join(ws[k:] if r.random() < 0.75 else ws[:-1])
                if not set(norm(n).split()) - GENERIC:
                    continue
            if e.area and r.random() < 0.14 and norm(e.area) not in norm(n):
                where = e.area
            hits = refs.match(n, where, self.here)
            if len(hits) != 1 or hits[0] is not e:
                if not e.area or norm(e.area) in norm(n):
                    continue
                where = e.area
                hits = refs.match(n, where, self.here)
                if len(hits) != 1 or hits[0] is not e:
                    continue
            if where is None and norm(n) in refs.area_words:
                continue
            n = self.spoken_name(n)
            if where:
                if r.random() < 0.4:
                    n = self.area_say(where) + " " + n
                    return n if bare else self.article(n)
                n = n if bare else self.article(n)
                return n + " " + self.in_area(where)
            return n if bare else self.article(n)
        raise Skip

    def other_word(self, s, e):
        """The same with another word for the thing ("telly"), where nothing else here could be meant by it."""
        ws = s.split()
        if {"in", "on"} & set(ws):
            return s
        for i, w in enumerate(ws):
            for fam in W.OTHER_WORDS:
                if w not in fam:
                    continue
                rest, all_ = set(norm(s).split()) - {w, "the", "my", "our", "this"}, {x for f in fam for x in f.split()}
                if any(o is not e and set(norm(n).split()) & all_ and rest <= set(norm(n).split()) for o in self.home.entities for n in names(o)) or any(set(a.split()) & all_ for a in [*self.refs.area_words, *self.refs.floor_words]):
                    return s
                return " ".join(ws[:i] + [self.rng.choice([x for x in fam if x != w])] + ws[i + 1:])
        return s

    def kind_word(self, domain, cls="", plural=None):
        s, p = KIND[(domain, cls)] if (domain, cls) in KIND else KIND[(domain, "")]
        plural = self.rng.random() < 0.7 if plural is None else plural
        return self.rng.choice(p if plural else s), plural

    def group_say(self, t, bare=False):
        """Words for a room's or floor's devices of a kind."""
        r = self.rng
        d, cls = t.domain, t.cls
        for _ in range(8):
            plural = None
            if d not in ("light", "climate", "media_player"):
                plural = len(t.ents) > 1
            w, plural = self.kind_word(d, cls, plural)
            if d == "climate" and w == "ac" and r.random() < 0.5:
                continue
            if not plural and len(t.ents) > 1 and w in ONE_OF:       # "the speaker", and there are two: that is to be asked about
                continue
            if t.kind == "area":
                if w == "lamp" or self.refs.match(w, t.area) or any(norm(n) in (norm(t.area) + " " + w, w) for e in self.home.of(area=t.area) for n in names(e)):
                    continue
                a = self.area_say(t.area)
                if norm(a + " " + w) in self.refs.by_name:
                    continue
                x = r.random()
                if x < 0.45:
                    n = a + " " + w
                    return n if bare else self.article(n)
                pre = "all the " if plural and x > 0.9 else "every " if not plural and x > 0.97 else ""
                n = w if bare else pre + w if pre else self.article(w)
                return n + " " + self.in_area(t.area)
            if t.kind == "floor":
                fl = next(f for f in self.home.floors if f[0] == t.floor)
                n = self.spoken_name(r.choice([fl[0]] * 2 + list(fl[1])))
                w, _ = self.kind_word(d, cls, True)
                if n in ("upstairs", "downstairs", "outside"):
                    return r.choice(("%s %s" % (n, w), "the %s %s" % (w, n), "the %s %s" % (n, w), "all the %s %s" % (w, n)))
                if n.startswith("lower") or n.startswith("upper") or "floor" in n or "level" in n or "deck" in n:
                    return r.choice(("the %s on the %s" % (w, n), "all %s on the %s" % (w, n), "%s %s" % (n, w), "the %s %s" % (n, w), "all the %s on the %s" % (w, n)))
                return r.choice(("the %s in the %s" % (w, n), "%s %s" % (n, w), "all the %s in the %s" % (w, n), "the %s %s" % (n, w)))
            w, _ = self.kind_word(d, cls, True)
            if t.kind == "all":
                return r.choice(("all %s" % w, "all the %s" % w, "every %s" % self.kind_word(d, cls, False)[0].replace("lamp", "light"), "all my %s" % w, "all of the %s" % w,
                                 "all %s in the house" % w, "all the %s in the house" % w, "all %s everywhere" % w, "the %s in the whole house" % w, "the %s everywhere" % w, "every single %s" % self.kind_word(d, cls, False)[0].replace("lamp", "light"),
                                 "the %s in every room" % w, "all the %s at home" % w))
            w, pl = self.kind_word(d, cls, None if d in ("light", "climate", "media_player") else len(t.ents) > 1)
            if w == "lamp" or not pl and len(t.ents) > 1 and w in ONE_OF or self.refs.match(w, None, self.here) and not (t.kind == "ent" and self.refs.match(w, None, self.here) == t.ents):
                continue
            return r.choice(("the %s", "the %s", "the %s", "%s", "my %s", "the %s in here", "the %s in this room", "the %s here")) % w if not bare else w
        raise Skip

    def say(self, t, bare=False):
        if t.words:
            return t.words
        if t.kind == "ent":
            s = self.ent_say(t.ents[0], bare)
            return self.other_word(s, t.ents[0]) if self.hard and self.rng.random() < 0.3 else s
        if t.kind == "room":
            return self.rng.choice(("everything %s" % self.in_area(t.area), "all the devices %s" % self.in_area(t.area), "everything %s" % self.in_area(t.area), "all %s" % self.in_area(t.area)))
        return self.group_say(t, bare)

    def any_words(self, most=4, errand=True):
        w = any_words(self.rng, most, errand)
        if w is None:
            raise Skip
        return w

    def number(self, n):
        return g(n) if self.st.digits else num_words(n)

    def pct(self, n):
        r = self.rng
        if self.hard and n in FRACTIONS and r.random() < 0.3:
            return r.choice(FRACTIONS[n])
        if n == 50 and r.random() < 0.15:
            return r.choice(("half", "half", "fifty fifty") if False else ("half",))
        if n == 25 and r.random() < 0.15:
            return "a quarter"
        if n == 75 and r.random() < 0.1:
            return "three quarters"
        if self.st.digits:
            return "%d%s" % (n, r.choice(("%", "%", " percent", "", " %")))
        return num_words(n) + r.choice((" percent", " percent", " percent", " percent", "", " per cent"))

    def degrees(self, v):
        r = self.rng
        if v != int(v) and v * 2 == int(v * 2) and not self.st.digits and r.random() < 0.5:
            return num_words(int(v)) + " and a half" + r.choice(("", " degrees", " degrees"))
        u = r.choice(("", " degrees", " degrees", " degrees"))
        if r.random() < 0.08:
            u = " degrees " + self.home.unit
        return self.number(v) + u

    def duration(self, adj=False):
        """(words, words as an adjective, slots)"""
        r, n = self.rng, self.number
        unit = lambda k, w: "%s %s%s" % (n(k), w, "s" if k != 1 and not adj else "")
        x = r.random()
        if x < 0.42:
            m = r.choice((1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 10, 12, 15, 15, 18, 20, 25, 30, 35, 40, 45, 50, 55, 90, r.randint(1, 59)))
            if m == 1 and r.random() < 0.5:
                return "a minute", "one minute", {"minutes": 1}
            return "%s minute%s" % (n(m), "s" if m != 1 else ""), "%s minute" % n(m), {"minutes": m}
        if x < 0.55:
            s = r.choice((10, 15, 20, 30, 30, 40, 45, 60, 90, r.randint(5, 120)))
            return "%s seconds" % n(s), "%s second" % n(s), {"seconds": s}
        if x < 0.66:
            h = r.choice((1, 1, 2, 2, 3, 4, 5, 6, 8, 12))
            if h == 1 and r.random() < 0.6:
                return "an hour", "one hour", {"hours": 1}
            return "%s hour%s" % (n(h), "s" if h != 1 else ""), "%s hour" % n(h), {"hours": h}
        if x < 0.73:
            return "half an hour", "half hour", {"minutes": 30}
        if x < 0.75:
            return "a quarter of an hour", "quarter hour", {"minutes": 15}
        if x < 0.77:
            return "three quarters of an hour", "three quarter hour", {"minutes": 45}
        if x < 0.83:
            h = r.choice((1, 1, 1, 2, 3))
            if h == 1 and r.random() < 0.6:
                w = r.choice(("an hour and a half", "one and a half hours", "one hour and a half"))
            else:
                w = r.choice(("%s and a half hours" % n(h), "%s hour%s and a half" % (n(h), "s" if h > 1 else "")))
            return w, w, {"hours": h, "minutes": 30}
        if x < 0.87:
            m = r.choice((1, 2, 2, 3, 4))
            w = "%s and a half minutes" % n(m) if m > 1 else r.choice(("a minute and a half", "one and a half minutes"))
            return w, w, {"minutes": m, "seconds": 30}
        if x < 0.89:
            w = r.choice(("an hour and a quarter", "one and a quarter hours", "an hour and fifteen minutes"))
            return w, w, {"hours": 1, "minutes": 15}
        if x < 0.95:
            h, m = r.choice((1, 1, 2, 3)), r.choice((5, 10, 15, 20, 30, 40, 45, r.randint(1, 59)))
            hw = r.choice(("an hour", "one hour")) if h == 1 else "%s hours" % n(h)
            w = "%s%s%s minute%s" % (hw, r.choice((" and ", " and ", " ")), n(m), "s" if m != 1 else "")
            return w, w, {"hours": h, "minutes": m}
        if x < 0.99:
            m, s = r.randint(1, 20), r.choice((10, 15, 20, 30, 40, 45))
            w = "%s minute%s%s%s seconds" % (n(m), "s" if m != 1 else "", r.choice((" and ", " and ", " ")), n(s))
            return w, w, {"minutes": m, "seconds": s}
        h, m, s = r.randint(1, 3), r.randint(1, 59), r.choice((5, 10, 20, 30, 45))
        w = "%s hour%s %s minute%s and %s seconds" % (n(h), "s" if h != 1 else "", n(m), "s" if m != 1 else "", n(s))
        return w, w, {"hours": h, "minutes": m, "seconds": s}

    def by(self, steps, word=None):
        """(words, size): steps is (plain, a bit, a lot); word says what "by 15" counts."""
        r = self.rng
        if self.hard and word == "degree" and r.random() < 0.12:
            return r.choice((("a couple of degrees", 2), ("a couple degrees", 2), ("by a couple of degrees", 2), ("a few degrees", 3), ("by a few degrees", 3)))
        x = r.random()
        if x < 0.42:
            return "", steps[0]
        if x < 0.64:
            return r.choice(("a bit", "a little", "a bit", "a little bit", "slightly", "a tad", "a touch")), steps[1]
        if x < 0.76:
            return r.choice(("a lot", "much", "a lot", "way", "a whole lot")), steps[2]
        if word == "degree":
            k = r.choice((1, 1, 2, 2, 3, 4, 5))
            w = "%s degree%s" % (self.number(k) if k > 1 else r.choice(("a", "one")), "s" if k > 1 else "")
        else:
            k = r.choice((5, 10, 10, 15, 20, 20, 25, 30, 40, 50))
            w = self.pct(k) if word == "percent" else self.number(k) if r.random() < 0.5 else self.pct(k)
            if not re.search(r"\d|percent|per cent", w) and w in ("half", "a quarter"):
                w = num_words(k) + " percent"
        return r.choice(("by ", "by ", "")) + w, k

    def line(self, key, need=None, fill=None):
        ln = None
        if self.held:
            ln = templates.pick(self.rng, key, True, need)
            if ln is None:
                raise Skip
        else:
            ln = templates.pick(self.rng, key, False, need)
        if ln is None:
            raise Skip
        return ln, ln.say(self.rng, fill or {})

    def wrap(self, ln, s):
        r = self.rng
        if ln.plain or r.random() > 0.42:
            return s
        w = templates.pick(r, "wrap", False, LIGHT.match if VERBLESS.match(s) or ln.text.startswith("{") else None)
        return w.say(r, {"x": s})

    def finish(self, s):
        """From template words to what arrives: recogniser's or typed."""
        r = self.rng
        s = re.sub(r"\s+", " ", s).strip()
        self.clean = True
        if self.st.spoken:
            s = re.sub(r"(\d+) ?%", lambda m: m.group(1) + " percent", s)
            if r.random() < 0.1:
                s = re.sub(r"\btv\b", "t v", s)
                s = re.sub(r"\bac\b", "a c", s)
            if r.random() < 0.06:
                s = self.fillers(s)
            if r.random() < self.noisy:
                t = noise.hear(r, s)
                if t != s:
                    self.clean = False
                s = t
            return s
        if self.st.typed:
            q = re.match(r"(what|who|how|is |are |did|do |does|which|when|where|why|can |could|would|will|have )", s)
            s = s[:1].upper() + s[1:]
            s = re.sub(r"\bi\b", "I", s)
            s += "?" if q and r.random() < 0.8 else "." if r.random() < 0.4 else "!" if r.random() < 0.03 else ""
            if r.random() < 0.2 * self.noisy:
                s = self.typo(s)
        elif r.random() < 0.25 * self.noisy:
            s = self.typo(s)
        return s

    def typo(self, s):
        t = noise.typo(self.rng, s)
        self.clean = t == s
        return t

    def fillers(self, s):
        r = self.rng
        ws = s.split()
        for _ in range(r.choice((1, 1, 2))):
            ws.insert(r.randrange(len(ws) + 1), r.choice(("um", "uh", "er", "like", "you know", "please", "well", "so", "hm")))
        return " ".join(ws)

    # -- the record -----------------------------------------------------------
    def between(self):
        """Between two exchanges: time passes, and now and then somebody uses a real switch."""
        r = self.rng
        if not self.turns or self.live and not self.deltas:
            return
        self.home.clock += datetime.timedelta(minutes=r.choice((0, 0, 0, 0, 1, 1, 2, 5, 20)))
        if r.random() < 0.06:
            e = r.choice(self.home.entities)
            if e.domain in ("light", "switch", "lock", "media_player", "binary_sensor"):
                new = homes.state_of(r, e, self.home.unit)
                if new != e.state:
                    e.state = new
                    self.changed.append(e)
                    if self.last and self.last["target"] and e in self.last["target"].ents:
                        self.last = None

    def tell(self):
        """What changed since it was last told, just before the user's words."""
        if self.turns and self.live and self.deltas and (self.changed or self.home.clock != self.told):
            self.messages.append(("system", prompt.now(self.home, self.here, only=self.changed)))
        self.told = self.home.clock
        self.changed = []

    def user(self, intent, text, expect):
        self.turns.append({"at": len(self.messages), "intent": intent, "expect": expect, "clean": self.clean})
        self.messages.append(("user", text))

    def result_text(self, res, args):
        if self.result_form == 0 or not res.get("success") or "states" in res or "timers" in res or "date" in res:
            return house.dumps(res)
        if self.result_form == 1:
            return house.dumps({"success": True})
        return house.dumps({"speech": {}, "response_type": "action_done", "data": {"success": [{"name": c["name"], "type": "entity"} for c in res.get("changed", [])], "failed": []}})

    def run(self, calls):
        """Carries the calls out and records them with their results."""
        for n, a in calls:
            if n not in self.has:
                raise Skip
        self.messages.append(("calls", calls))
        out = []
        for n, a in calls:
            if self.rng.random() < 0.025 and n != "GetLiveContext":
                who = a.get("name", "The device")
                res, ch = {"success": False, "error": self.rng.choice(("%s is not available", "%s did not answer", "%s is offline", "%s timed out")) % who}, []
            else:
                res, ch = house.call(self.home, n, a)
            for e in ch:
                if e not in self.changed:
                    self.changed.append(e)
            out.append(res)
            self.messages.append(("tool", self.result_text(res, a)))
        return out

    def reply(self, text):
        self.messages.append(("assistant", text))

    def do(self, intent, text, calls, reply, undo=None, target=None, tool=None, params=None):
        """One exchange that acts. reply: text, or a function of the results."""
        for n, _ in calls:
            if n not in self.has:
                raise Skip
        self.tick_then_user(intent, text, {"calls": calls})
        res = self.run(calls)
        bad = [x for x in res if not x.get("success")]
        if bad and len(bad) == len(res):
            err = bad[0]["error"]
            self.reply("Sorry, %s." % err)
            self.last = None
        else:
            s = reply(res) if callable(reply) else reply
            if bad:
                s += " But %s." % bad[0]["error"]
            elif len(res) == 1 and res[0].get("already") and len(res[0]["already"]) == 1 and calls[0][0] in ("HassTurnOn", "HassTurnOff"):
                s = self.already(res[0]["already"][0], calls[0][0] == "HassTurnOn")
            self.reply(s)
            before = self.last
            self.last = {"calls": calls, "undo": undo, "target": target, "tool": tool, "params": params or {}, "before": None}
            if before and before["target"] and intent == "follow-up":
                self.last["before"] = {"target": before["target"], "tool": before["tool"]}

    def already(self, name, on):
        e = next((x for x in self.home.entities if x.name == name), None)
        d = e.domain if e else "light"
        w = {"cover": ("open", "closed"), "lock": ("locked", "unlocked")}.get(d, ("on", "off"))[0 if on else 1]
        n = the(name)
        return "%s %s already %s." % (n[0].upper() + n[1:], "are" if is_plural(name) else "is", w)

    def tick_then_user(self, intent, text, expect):
        self.tell()
        self.user(intent, text, expect)

    def answer(self, intent, text, reply, expect):
        self.tick_then_user(intent, text, expect)
        self.reply(reply)

    # -- describing targets in answers ---------------------------------------
    def desc(self, t):
        if t.kind == "ent":
            return the(t.ents[0].name) + (" in %s" % the(t.area) if "area" in t.slots else "")
        if t.kind == "room":
            return "everything in %s" % the(t.area)
        w = {"light": "lights", "fan": "fan" if len(t.ents) == 1 else "fans", "climate": "heating", "media_player": "music", "lock": "lock" if len(t.ents) == 1 else "locks",
             "switch": "switches"}.get(t.domain) or KIND.get((t.domain, t.cls), (["cover"], ["covers"]))[0 if len(t.ents) == 1 else 1][0]
        if t.area:
            return "the %s in %s" % (w, the(t.area))
        if t.floor:
            return "the %s on %s" % (w, the(t.floor))
        return "all %s" % w
