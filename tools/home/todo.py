# SPDX-License-Identifier: MIT
"""Lists."""
import words as W
from acts import speak
from homes import is_shopping
from refer import Target
from talk import Skip, and_list, the


def list_say(k, e):
    r = k.rng
    n = k.spoken_name(e.name)
    if len(k.home.of("todo")) == 1 and r.random() < 0.3:
        return r.choice(("the list", "my list", "the list", "our list"))
    if k.hard and is_shopping(e.name) and "list" not in n and len([x for x in k.home.of("todo") if is_shopping(x.name)]) == 1 and not any("shopping" in x.name.lower() for x in k.home.of("todo")) and r.random() < 0.3:
        return r.choice(("the shopping list", "my shopping list", "our shopping list"))
    if not n.endswith("list") and r.random() < 0.5:
        return r.choice(("the %s list", "my %s list", "%s")) % n
    if n == "to do" or n == "todo":
        return r.choice(("my to do list", "the to do list", "my to do's"))
    return r.choice(("the %s", "the %s", "my %s", "our %s", "%s")) % n


def clear(k):
    """Everything on a list goes, one thing after another."""
    r = k.rng
    es = [e for e in k.home.of("todo") if len(e.state.get("items", [])) <= 5]
    if not es:
        raise Skip
    e = r.choice(es)
    items = e.state.get("items", [])
    text = speak(k, "list_clear", l=lambda _: list_say(k, e))
    if not items:
        return k.answer("no device", text, "There is nothing on %s." % the(e.name), {"no": 1})
    if not k.live:
        raise Skip
    k.do("HassListRemoveItem", text, [("HassListRemoveItem", {"item": i, "name": e.name}) for i in items], "Removed %s from %s." % (and_list(items), the(e.name)), [("HassListAddItem", {"item": i, "name": e.name}) for i in items], None, None, {})


def lists(k):
    r = k.rng
    es = k.home.of("todo")
    if not es:
        raise Skip
    e = r.choice(es)
    items = e.state.get("items", [])
    shop = is_shopping(e.name)
    x = r.random()
    pool = W.ITEMS if shop or r.random() < 0.2 else W.BOOKS if "pack" in e.name.lower() else W.TASKS
    if x < 0.62 or not items:
        i = k.any_words(errand=not shop) if k.hard and r.random() < 0.5 else r.choice(pool)
        if r.random() < 0.25 and pool is W.ITEMS:
            i = r.choice(("two", "three", "six", "a bag of", "a bottle of", "a box of", "some more", "red", "organic", "fresh", "a pound of", "a pack of")) + " " + i
        if i in items:
            raise Skip
        tool = "HassListAddItem"
        only_shop = shop and len([l for l in es if is_shopping(l.name)]) == 1
        many = r.random() < 0.2
        extra = [y for y in r.sample(pool, r.choice((1, 1, 2))) if y != i and y not in items and " and " not in y] if many else []
        its = [i] + extra
        key = "shop_add" if only_shop and pool is W.ITEMS and r.random() < 0.3 else "list_add"
        noisy, k.noisy = k.noisy, 0.0
        try:
            text = speak(k, key, i=and_list(its).replace(",", "" if k.st.spoken else ","), l=lambda _: list_say(k, e))
        finally:
            k.noisy = noisy
        calls = [(tool, {"item": y, "name": e.name}) for y in its]
        undo = [("HassListRemoveItem", {"item": y, "name": e.name}) for y in its]
        return k.do(tool, text, calls, "Added %s to %s." % (and_list(its), the(e.name)), undo, Target("ent", [e], {"name": e.name}, "todo"), tool, {"item": i})
    i = r.choice(items)
    done = r.random() < 0.6
    tool = "HassListCompleteItem" if done else "HassListRemoveItem"
    if r.random() < 0.45 and sum(i in l.state.get("items", []) for l in es) == 1:    # the list is the one that holds it
        key = ("done_any" if pool is W.ITEMS and shop else "did_any") if done else "remove_any"
        text = speak(k, key, i=(r.choice(("the ", "")) + i if pool is W.ITEMS else i))
        return k.do(tool, text, [(tool, {"item": i, "name": e.name})], ("Checked off %s on %s." if done else "Removed %s from %s.") % (i, the(e.name)), None, None, tool, {"item": i})
    text = speak(k, "list_done" if done else "list_remove", i=(r.choice(("the ", "")) + i if pool is W.ITEMS else i), l=lambda _: list_say(k, e))
    k.do(tool, text, [(tool, {"item": i, "name": e.name})], ("Checked off %s on %s." if done else "Removed %s from %s.") % (i, the(e.name)), None, Target("ent", [e], {"name": e.name}, "todo"), tool, {"item": i})
