# SPDX-License-Identifier: MIT
"""Whole conversations: which exchanges there are, and how often they come."""
from absent import cannot, no_device, no_such_ability, out_of_range
from acts import speak, target
from comfort import fans, position, temps
from follow import follow
from lighting import lights, lights_rel
from players import media, play, volume
from questions import q_area, q_count, q_heat_on, q_list, q_locks, q_no_reading, q_outside, q_playing, q_set_here, q_state, q_temp, q_time, q_which, q_windows
from refer import names, norm
from robots import mower, vacuum
from several import multi, two_of_one
from switching import all_but, covers, everything, locks, negated, onoff, scenes, wish
from talk import Skip
from timers import broadcast, for_while, timer, timer_more, two_timers
from todo import clear, lists
from which import here_decides, lone, which_one

CHAT = {
    "thanks": ("You're welcome.",), "hello": ("Hello. What can I do?",), "morning": ("Good morning.",), "evening": ("Good evening.",), "afternoon": ("Good afternoon.",), "night": ("Good night.",),
    "bye": ("Goodbye.",), "howare": ("I'm fine, thank you.",), "who": ("I'm the voice of this home.",), "can": ("I can switch lights and devices, set timers and answer questions about your home.",),
    "joke": ("Why did the lamp go to school? To get brighter.", "I told the fan a joke. It was blown away.", "The thermostat and I had an argument. It got heated."),
    "nevermind": ("Okay.",), "praise": ("Thank you, that is kind.",), "insult": ("Sorry about that.",), "feel": ("I hear you.",), "chat_misc": ("I'm here if you need me.",),
}


def chat(k):
    r = k.rng
    if r.random() < 0.07:
        t = target(k, r.choice(("light", "light", "switch", "fan")), "eeeah")
        return k.answer("chat", speak(k, "dont", t=lambda _: k.say(t)), "Okay, I'll leave it.", {"chat": 1})
    key = r.choice(("thanks", "thanks", "thanks", "hello", "hello", "morning", "evening", "afternoon", "night", "bye", "howare", "who", "can", "joke", "nevermind", "nevermind", "nevermind", "praise", "insult", "feel", "chat_misc", "chat_misc"))
    text = speak(k, key)
    if key in ("night", "morning", "bye", "can", "feel") and any(norm(text.strip(".!?")) in norm(n) or norm(n) in norm(text) for e in k.home.of("scene") + k.home.of("script") for n in names(e)):
        raise Skip
    k.answer("chat", text, r.choice(CHAT[key]), {"chat": 1})
    if key in ("nevermind",):
        k.last = None


def chat_more(k):
    """What people say without wanting anything."""
    text = speak(k, "chat_more")
    if any(set(norm(text.strip(".!?")).split()) & set(norm(n).split()) - {"i", "a", "the", "is", "it", "to", "my"} for e in k.home.of("scene") + k.home.of("script") for n in names(e)):
        raise Skip
    k.answer("chat", text, "Okay.", {"chat": 1})


def hard(fn):
    """An exchange that so far only training has."""
    def only(k):
        if not k.hard:
            raise Skip
        return fn(k)
    return only


PLAN = [  # (weight, exchange)
    (15, onoff), (5, covers), (3, locks), (2.5, scenes), (2.5, everything), (9, lights), (7, lights_rel), (3.5, position), (3.5, fans), (6, temps),
    (12, media), (8, volume), (5, play), (8, vacuum), (6, mower), (9, lists), (6, timer), (5, timer_more), (2, broadcast), (6, multi),
    (7, q_state), (2, q_which), (0.7, q_count), (2.5, wish), (1.2, q_area), (0.8, q_locks), (0.8, q_windows), (2, q_temp), (1.5, q_list), (1, q_playing), (2.5, q_time), (34, which_one), (9, here_decides), (5, lone), (11, no_device), (3.5, cannot), (4, chat),
]
# what is hard to learn comes up more often in training than where it is measured
MORE_OF = {q_which: 4, q_area: 3, q_temp: 2.5, q_windows: 3, q_locks: 2, q_list: 2, volume: 1.5, temps: 2, lights_rel: 1.4, which_one: 3.5, here_decides: 4, no_device: 1.6, lone: 2.5, q_state: 1.3, q_time: 0.7, cannot: 1.2, mower: 0.6, vacuum: 0.8, lists: 1.2, media: 1.3, play: 1.3, timer: 1.2, timer_more: 1.8}
FNS = [f for _, f in PLAN]
WEIGHTS = [w for w, _ in PLAN]
TRAINING = ([*FNS, hard(negated), hard(all_but), hard(two_timers), hard(out_of_range), hard(clear), hard(for_while), hard(q_set_here), hard(chat_more), hard(two_of_one), hard(q_outside), hard(q_no_reading), hard(no_such_ability), hard(q_heat_on)],
            [w * MORE_OF.get(f, 1) for w, f in PLAN] + [6, 8, 3, 5, 3, 5, 3, 3, 5, 6, 3, 2.5, 2])


def attempt(k, fn):
    """One exchange, or nothing at all: a Skip half way leaves no trace."""
    n, m = len(k.messages), len(k.turns)
    home, last, told_, changed, timers = k.home.clock, k.last, k.told, list(k.changed), [dict(t) for t in k.home.timers]
    states = [dict(e.state) for e in k.home.entities]
    k.st = k.style()
    try:
        fn(k)
        return True
    except Skip:
        del k.messages[n:], k.turns[m:]
        k.last, k.told, k.changed, k.home.timers = last, told_, changed, timers
        for e, s in zip(k.home.entities, states):
            e.state = s
        return False


def converse(k, n, plan=None):
    """@n exchanges; a follow-up now and then."""
    done = tries = 0
    fns, weights = plan or (FNS, WEIGHTS)
    while done < n and tries < 60 * n:
        tries += 1
        if tries % 8 == 1:
            k.between()
        fn = follow if k.last and k.rng.random() < 0.36 else k.rng.choices(fns, weights)[0]
        if attempt(k, fn):
            done += 1
            k.between()
    return done
