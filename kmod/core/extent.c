// SPDX-License-Identifier: (GPL-2.0-only OR MIT)
/*
 * Extents of one carve-out: an address-ordered list of all of them, and an AVL
 * tree of the free ones by (size, start). No recursion: the tree has parent
 * links, and the kernel's stack is small.
 */
#include "extent.h"

/* -- the tree of free extents ------------------------------------------------ */

static bool less(const struct extent *a, const struct extent *b)
{
	return a->size != b->size ? a->size < b->size : a->start < b->start;
}

static int height(const struct extent *e)
{
	return e ? e->height : 0;
}

static void set_height(struct extent *e)
{
	int l = height(e->left), r = height(e->right);

	e->height = (u8)((l > r ? l : r) + 1);
}

/* Puts @new (may be NULL) where @old hangs. */
static void replace_child(struct extent_map *m, struct extent *old, struct extent *new)
{
	struct extent *p = old->parent;

	if (!p)
		m->root = new;
	else if (p->left == old)
		p->left = new;
	else
		p->right = new;
	if (new)
		new->parent = p;
}

static struct extent *rotate_left(struct extent_map *m, struct extent *e)
{
	struct extent *r = e->right;

	replace_child(m, e, r);
	e->right = r->left;
	if (e->right)
		e->right->parent = e;
	r->left = e;
	e->parent = r;
	set_height(e);
	set_height(r);
	return r;
}

static struct extent *rotate_right(struct extent_map *m, struct extent *e)
{
	struct extent *l = e->left;

	replace_child(m, e, l);
	e->left = l->right;
	if (e->left)
		e->left->parent = e;
	l->right = e;
	e->parent = l;
	set_height(e);
	set_height(l);
	return l;
}

/* From @e to the root: heights, and a rotation where a side is two higher. */
static void retrace(struct extent_map *m, struct extent *e)
{
	int lean, was;

	while (e) {
		was = e->height;
		lean = height(e->left) - height(e->right);
		if (lean > 1) {
			if (height(e->left->left) < height(e->left->right))
				rotate_left(m, e->left);
			e = rotate_right(m, e);
		} else if (lean < -1) {
			if (height(e->right->right) < height(e->right->left))
				rotate_right(m, e->right);
			e = rotate_left(m, e);
		} else {
			set_height(e);
		}
		if (e->height == was)
			return;
		e = e->parent;
	}
}

static void tree_insert(struct extent_map *m, struct extent *e)
{
	struct extent **at = &m->root, *p = NULL;

	while (*at) {
		p = *at;
		at = less(e, p) ? &p->left : &p->right;
	}
	e->left = NULL;
	e->right = NULL;
	e->parent = p;
	e->height = 1;
	*at = e;
	retrace(m, p);
}

static void tree_remove(struct extent_map *m, struct extent *e)
{
	struct extent *fix, *s;

	if (e->left && e->right) {
		for (s = e->right; s->left; s = s->left)
			;
		fix = s;
		if (s->parent != e) {
			fix = s->parent;
			replace_child(m, s, s->right);
			s->right = e->right;
			s->right->parent = s;
		}
		s->left = e->left;
		s->left->parent = s;
		replace_child(m, e, s);
		s->height = e->height;
	} else {
		fix = e->parent;
		replace_child(m, e, e->left ? e->left : e->right);
	}
	retrace(m, fix);
}

/* The smallest free extent of at least @size, the lowest among equals. */
static struct extent *tree_at_least(const struct extent_map *m, u64 size)
{
	struct extent *e = m->root, *best = NULL;

	while (e) {
		if (e->size >= size) {
			best = e;
			e = e->left;
		} else {
			e = e->right;
		}
	}
	return best;
}

static struct extent *tree_next(struct extent *e)
{
	struct extent *p;

	if (e->right) {
		for (e = e->right; e->left; e = e->left)
			;
		return e;
	}
	for (p = e->parent; p && p->right == e; p = p->parent)
		e = p;
	return p;
}

static struct extent *tree_last(const struct extent_map *m)
{
	struct extent *e = m->root;

	while (e && e->right)
		e = e->right;
	return e;
}

/* -- the list ---------------------------------------------------------------- */

/* After @at; NULL: at the front. */
static void list_add(struct extent_map *m, struct extent *at, struct extent *e)
{
	e->prev = at;
	e->next = at ? at->next : m->first;
	if (e->next)
		e->next->prev = e;
	else
		m->last = e;
	if (at)
		at->next = e;
	else
		m->first = e;
}

static void list_del(struct extent_map *m, struct extent *e)
{
	if (e->prev)
		e->prev->next = e->next;
	else
		m->first = e->next;
	if (e->next)
		e->next->prev = e->prev;
	else
		m->last = e->prev;
}

static void make_free(struct extent_map *m, struct extent *e)
{
	e->state = EXTENT_FREE;
	e->owner = NULL;
	e->link = NULL;
	m->n_free++;
	m->free += e->size;
	tree_insert(m, e);
}

static void unmake_free(struct extent_map *m, struct extent *e)
{
	tree_remove(m, e);
	m->n_free--;
	m->free -= e->size;
}

void extent_spare_put(struct extent_map *m, struct extent *node)
{
	memset(node, 0, sizeof(*node));
	node->state = EXTENT_SPARE;
	node->next = m->spare;
	m->spare = node;
	m->n_spare++;
}

struct extent *extent_spare_get(struct extent_map *m)
{
	struct extent *node = m->spare;

	if (!node)
		return NULL;
	m->spare = node->next;
	m->n_spare--;
	node->next = NULL;
	return node;
}

/* A free extent of a spare node, after @at. The caller saw that there is one. */
static void add_free(struct extent_map *m, struct extent *at, u64 start, u64 size)
{
	struct extent *e = extent_spare_get(m);

	e->start = start;
	e->size = size;
	list_add(m, at, e);
	make_free(m, e);
}

int extent_map_init(struct extent_map *m, u64 size, u64 unit, struct extent *node)
{
	if (!core_is_pow2(unit) || (size & (unit - 1)))
		return -EINVAL;
	memset(m, 0, sizeof(*m));
	m->size = size;
	m->unit = unit;
	extent_spare_put(m, node);
	if (size)
		add_free(m, NULL, 0, size);
	return 0;
}

/* Makes [start, start + size) of the free extent @e a used one. */
static struct extent *carve(struct extent_map *m, struct extent *e, u64 start, u64 size,
			    void *owner)
{
	u64 end = e->start + e->size;

	unmake_free(m, e);
	if (start > e->start)
		add_free(m, e->prev, e->start, start - e->start);
	if (start + size < end)
		add_free(m, e, start + size, end - start - size);
	e->start = start;
	e->size = size;
	e->state = EXTENT_USED;
	e->owner = owner;
	e->link = NULL;
	m->n_used++;
	return e;
}

/* Whether @size bytes fit into @e at a multiple of @align, and where. */
static bool fits(const struct extent *e, u64 size, u64 align, u64 *ret_start)
{
	u64 start, end;

	if (core_add_overflow(e->start, align - 1, &start))
		return false;
	start &= ~(align - 1);
	if (core_add_overflow(start, size, &end) || end > e->start + e->size)
		return false;
	*ret_start = start;
	return true;
}

static bool bad_size(const struct extent_map *m, u64 size)
{
	return !size || (size & (m->unit - 1));
}

int extent_alloc(struct extent_map *m, u64 size, u64 align, void *owner,
		 struct extent **ret_ext)
{
	struct extent *e, *stop;
	u64 start, sure;
	int looked;

	if (bad_size(m, size) || !core_is_pow2(align) || align < m->unit)
		return -EINVAL;
	if (m->n_spare < EXTENT_SPARE_ALLOC)
		return -ENOMEM;
	e = tree_at_least(m, size);
	for (looked = 0; e && looked < EXTENT_LOOK; looked++) {
		if (fits(e, size, align, &start))
			goto found;
		e = tree_next(e);
	}
	if (!e)
		return -ENOSPC;
	/* one that long holds it wherever it begins; unless the end is near 2^64 */
	stop = e;
	sure = core_add_cap(size, align - m->unit);
	e = tree_at_least(m, sure);
	if (e && fits(e, size, align, &start))
		goto found;
	for (e = stop; e; e = tree_next(e)) {
		if (fits(e, size, align, &start))
			goto found;
	}
	return -ENOSPC;
found:
	*ret_ext = carve(m, e, start, size, owner);
	return 0;
}

int extent_alloc_part(struct extent_map *m, u64 size, void *owner, struct extent **ret_ext)
{
	struct extent *e;

	if (bad_size(m, size))
		return -EINVAL;
	if (m->n_spare < EXTENT_SPARE_ALLOC)
		return -ENOMEM;
	e = tree_last(m);
	if (!e)
		return -ENOSPC;
	*ret_ext = carve(m, e, e->start, core_min(size, e->size), owner);
	return 0;
}

int extent_alloc_at(struct extent_map *m, u64 start, u64 size, void *owner,
		    struct extent **ret_ext)
{
	struct extent *e;

	if (bad_size(m, size) || (start & (m->unit - 1)) || start >= m->size ||
	    size > m->size - start)
		return -EINVAL;
	if (m->n_spare < EXTENT_SPARE_ALLOC)
		return -ENOMEM;
	e = extent_find(m, start);
	if (e->state != EXTENT_FREE || start + size > e->start + e->size)
		return -EBUSY;
	*ret_ext = carve(m, e, start, size, owner);
	return 0;
}

void extent_free(struct extent_map *m, struct extent *ext)
{
	struct extent *p = ext->prev, *n = ext->next;

	m->n_used--;
	if (p && p->state == EXTENT_FREE) {
		unmake_free(m, p);
		ext->start = p->start;
		ext->size += p->size;
		list_del(m, p);
		extent_spare_put(m, p);
	}
	if (n && n->state == EXTENT_FREE) {
		unmake_free(m, n);
		ext->size += n->size;
		list_del(m, n);
		extent_spare_put(m, n);
	}
	make_free(m, ext);
}

u64 extent_largest(const struct extent_map *m)
{
	struct extent *e = tree_last(m);

	return e ? e->size : 0;
}

u64 extent_tail(const struct extent_map *m)
{
	return m->last && m->last->state == EXTENT_FREE ? m->last->size : 0;
}

static int grow(struct extent_map *m, u64 by)
{
	struct extent *e = m->last;

	if (e && e->state == EXTENT_FREE) {
		unmake_free(m, e);
		e->size += by;
		make_free(m, e);
	} else {
		if (!m->n_spare)
			return -ENOMEM;
		add_free(m, e, m->size, by);
	}
	m->size += by;
	return 0;
}

int extent_resize(struct extent_map *m, u64 size)
{
	struct extent *e = m->last;
	u64 by;

	if (size & (m->unit - 1))
		return -EINVAL;
	if (size > m->size)
		return grow(m, size - m->size);
	by = m->size - size;
	if (!by)
		return 0;
	if (extent_tail(m) < by)
		return -EBUSY;
	unmake_free(m, e);
	e->size -= by;
	if (e->size) {
		make_free(m, e);
	} else {
		list_del(m, e);
		extent_spare_put(m, e);
	}
	m->size = size;
	return 0;
}

struct extent *extent_find(const struct extent_map *m, u64 at)
{
	struct extent *e;

	for (e = m->first; e; e = e->next) {
		if (at >= e->start && at - e->start < e->size)
			return e;
	}
	return NULL;
}

/* -- for tests ---------------------------------------------------------------- */

#define CHECK(cond) do { if (!(cond)) return __LINE__; } while (0)

static int check_list(const struct extent_map *m)
{
	const struct extent *e, *prev = NULL;
	u32 n_free = 0, n_used = 0;
	u64 at = 0, free = 0;

	for (e = m->first; e; e = e->next) {
		CHECK(e->prev == prev);
		CHECK(e->start == at);
		CHECK(e->size && !(e->size & (m->unit - 1)));
		CHECK(e->state == EXTENT_FREE || e->state == EXTENT_USED);
		if (e->state == EXTENT_FREE) {
			CHECK(!prev || prev->state == EXTENT_USED);
			n_free++;
			free += e->size;
		} else {
			n_used++;
		}
		at += e->size;
		prev = e;
	}
	CHECK(m->last == prev);
	CHECK(at == m->size);
	CHECK(free == m->free);
	CHECK(n_free == m->n_free);
	CHECK(n_used == m->n_used);
	return 0;
}

static int check_tree(const struct extent_map *m)
{
	struct extent *e = m->root, *prev = NULL;
	u32 n = 0;
	int lean;

	CHECK(!e || !e->parent);
	while (e && e->left)
		e = e->left;
	for (; e; e = tree_next(e)) {
		CHECK(e->state == EXTENT_FREE);
		CHECK(!prev || less(prev, e));
		CHECK(!e->left || e->left->parent == e);
		CHECK(!e->right || e->right->parent == e);
		lean = height(e->left) - height(e->right);
		CHECK(lean >= -1 && lean <= 1);
		CHECK(e->height == 1 + (lean > 0 ? height(e->left) : height(e->right)));
		prev = e;
		CHECK(++n <= m->n_free);
	}
	CHECK(n == m->n_free);
	return 0;
}

int extent_check(const struct extent_map *m)
{
	const struct extent *e;
	u32 n = 0;
	int ret;

	ret = check_list(m);
	if (!ret)
		ret = check_tree(m);
	if (ret)
		return ret;
	for (e = m->spare; e; e = e->next) {
		CHECK(e->state == EXTENT_SPARE);
		n++;
	}
	CHECK(n == m->n_spare);
	return 0;
}
