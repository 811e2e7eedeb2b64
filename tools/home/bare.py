# SPDX-License-Identifier: MIT
"""Conversations without a home: nobody told the model of one, as in a first try of a chat. It says so, and acts on nothing."""
import asks
from talk import Talk

SYSTEMS = (None, None, None, None, None, "You are a helpful assistant.", "You are a voice assistant for a home.", "You are a voice assistant for a home. Answer in one short sentence.", "You are a smart home assistant.",
           "Answer briefly.", "You are a helpful, friendly assistant who answers in plain text.", "Be concise.", "You control a smart home.", "You are an AI assistant that controls the devices in a house.", "Speak like a butler.",
           "You are hearth.", "Answer in one sentence. Do not use markdown.", "You are a chat bot.", "Today is a fine day. Be polite.")
CANNOT = "I can't do that: nobody has told me of a home."
UNKNOWN = "I don't know that: nobody has told me of a home."


class Bare:
    """What Talk has, for one that has no home."""

    def __init__(self, rng, held=False):
        k = Talk(rng, held=held, live=True, size=2)
        asks.converse(k, rng.choice((1, 1, 2, 3, 4, 6)))
        self.rng, self.tools, self.turns, self.hard = rng, [], [], False
        system = rng.choice(SYSTEMS)
        self.messages = [("system", system)] if system else []
        for t in k.turns:
            role, text = k.messages[t["at"]]
            if role != "user" or t["intent"] == "follow-up" and rng.random() < 0.7:
                continue
            self.messages.append((role, text))
            own = t["intent"] in ("chat", "cannot")
            self.turns.append({"at": len(self.messages) - 1, "intent": t["intent"] if own else "no home", "expect": t["expect"] if own else {"no": 1}, "clean": t["clean"]})
            self.messages.append(("assistant", k.messages[t["at"] + 1][1] if own else UNKNOWN if t["intent"] in ("question", "time") else CANNOT))
