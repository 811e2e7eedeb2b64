# SPDX-License-Identifier: MIT
"""Media players: what plays, what is to play, how loud."""
import re

import words as W
from acts import act, args, speak, target, where
from talk import Skip

MEDIA_KEYS = {"HassMediaPause": "pause", "HassMediaUnpause": "resume", "HassMediaNext": "next", "HassMediaPrevious": "previous", "HassMediaPlayerMute": "mute", "HassMediaPlayerUnmute": "unmute"}


def media(k):
    r = k.rng
    tool = r.choice(("HassMediaPause", "HassMediaPause", "HassMediaUnpause", "HassMediaNext", "HassMediaNext", "HassMediaPrevious", "HassMediaPlayerMute", "HassMediaPlayerUnmute"))
    key = MEDIA_KEYS[tool]
    if r.random() < 0.45:
        t = target(k, "media_player", "eeeeeeea")
        return act(k, tool, speak(k, key, t=lambda _: k.say(t)), tool, t)
    w, t = where(k, "media_player")
    act(k, tool, speak(k, key + "_here", **{"in": w}), tool, t)


def volume(k):
    r = k.rng
    v = r.choice((r.randrange(5, 101, 5), r.randrange(10, 101, 10), r.randint(0, 100)))
    x = r.random()
    if x < 0.45:
        if r.random() < 0.6:
            t = target(k, "media_player", "eeeeeeea")
            text = speak(k, "volume", t=lambda _: k.say(t), v=lambda _: k.pct(v), n=lambda _: k.number(v))
        else:
            w, t = where(k, "media_player")
            text = speak(k, "volume_here", **{"in": w, "v": lambda _: k.pct(v)})
        return act(k, "HassSetVolume", text, "HassSetVolume", t, {"volume_level": v})
    up = r.random() < 0.5
    by, step = k.by((10, 5, 30), "percent")
    if r.random() < 0.5:
        t = target(k, "media_player", "eeeeeeea")
        ln, s = k.line("louder" if up else "quieter", None, {"t": lambda _: k.say(t), "by": by})
    else:
        w, t = where(k, "media_player")
        ln, s = k.line("louder_here" if up else "quieter_here", None, {"in": w, "by": by})
    if "{by}" not in ln.text:
        step = 10
    act(k, "HassSetVolumeRelative", k.finish(k.wrap(ln, s)), "HassSetVolumeRelative", t, {"volume_step": step if up else -step})


def play(k):
    r = k.rng
    if r.random() < 0.5:
        t = target(k, "media_player", "eeeeeea")
        w = k.ent_say(t.ents[0]) if t.kind == "ent" else None
        on = "on " + w if w else k.in_area(t.area)
    else:
        on, t = where(k, "media_player")
    x = r.random()
    if x < 0.28:
        key, q, m = "play", r.choice(W.GENRES + W.ARTISTS), None
    else:
        key, pool, m = r.choice((("play_playlist", W.PLAYLISTS, "playlist"), ("play_artist", W.ARTISTS, "artist"), ("play_track", W.SONGS, "track"), ("play_album", W.ALBUMS, "album"),
                                 ("play_movie", W.MOVIES, "movie"), ("play_show", W.SHOWS, "tv_show"), ("play_podcast", W.PODCASTS, "podcast"), ("play", W.SONGS + W.ALBUMS + W.MOVIES + W.SHOWS, None)))
        q = r.choice(pool)
    if r.random() < 0.2:      # things nobody has heard of
        q = r.choice(W.PEOPLE).lower() + " " + r.choice(W.WHIMSY).lower() if r.random() < 0.5 else r.choice(W.ITEMS) + " " + r.choice(W.WHIMSY).lower()
    noisy, k.noisy = k.noisy, 0.0      # what is searched is what was heard: it stays as it is
    try:
        plain = key != "play" or q in W.GENRES       # nobody hears "a little yesterday"
        text = speak(k, key, None if plain else lambda z: not re.search(r"some|little|bit of|touch", z.text), q=q, on=on)
    finally:
        k.noisy = noisy
    if q.lower() not in text:
        raise Skip
    params = {"search_query": q}
    if m:
        params["media_class"] = m
    k.do("HassMediaSearchAndPlay", text, [("HassMediaSearchAndPlay", args("HassMediaSearchAndPlay", t, params))], "Playing %s." % q, None, t, "HassMediaSearchAndPlay", params)
