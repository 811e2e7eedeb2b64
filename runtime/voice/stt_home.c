// SPDX-License-Identifier: MIT
/* The names of a home, put where a pattern of the phrasebook can use them. */
#include "voice/stt_model.h"

#include <errno.h>
#include <string.h>

#include "home/home.h"

/* Slots of a domain, at most three; "thing" is every device. */
static const char *const domain_slots[HOME_DOMAINS][4] = {
	[HOME_LIGHT] = { "light", "switchable", "thing" },
	[HOME_SWITCH] = { "switch", "switchable", "thing" },
	[HOME_FAN] = { "fan", "switchable", "thing" },
	[HOME_COVER] = { "cover", "thing" },
	[HOME_CLIMATE] = { "climate", "switchable", "thing" },
	[HOME_LOCK] = { "lock", "thing" },
	[HOME_MEDIA_PLAYER] = { "media", "switchable", "thing" },
	[HOME_VACUUM] = { "vacuum", "thing" },
	[HOME_SCENE] = { "scene" },
	[HOME_SCRIPT] = { "scene" },
	[HOME_TODO] = { "list" },
	[HOME_SENSOR] = { "sensor" },
	[HOME_BINARY_SENSOR] = { "sensor", "thing" },
	[HOME_LAWN_MOWER] = { "mower", "thing" },
};

static int add_all(struct phrasebook *b, const char *slot, const char *name, char *const *aliases,
		   size_t n)
{
	int rc = phrasebook_add(b, slot, name);

	for (size_t i = 0; !rc && i < n; i++)
		rc = phrasebook_add(b, slot, aliases[i]);
	return rc;
}

static int add_entity(struct phrasebook *b, const struct home_entity *e)
{
	const json_t *items = json_object_get(e->state, "items");
	int rc = 0;

	for (size_t i = 0; !rc && domain_slots[e->domain][i]; i++)
		rc = add_all(b, domain_slots[e->domain][i], e->name, e->aliases, e->n_aliases);
	for (size_t i = 0; !rc && i < json_array_size(items); i++) {
		const char *item = json_string_value(json_array_get(items, i));

		if (item)
			rc = phrasebook_add(b, "item", item);
	}
	return rc;
}

int stt_model_names(const struct home *home, struct phrasebook *b, struct hearth_err *err)
{
	int rc = phrasebook_add(b, "item", "milk"); /* a home without lists still hears "add milk" */

	for (size_t i = 0; !rc && i < home_n_entities(home); i++)
		rc = add_entity(b, home_entity(home, i));
	for (size_t i = 0; !rc && i < home_n_areas(home); i++) {
		const struct home_area *a = home_area(home, i);

		rc = add_all(b, "area", a->name, a->aliases, a->n_aliases);
	}
	for (size_t i = 0; !rc && i < home_n_floors(home); i++) {
		const struct home_floor *f = home_floor(home, i);

		rc = add_all(b, "floor", f->name, f->aliases, f->n_aliases);
	}
	return rc ? err_set(err, rc, "no memory for the names of the home") : 0;
}
