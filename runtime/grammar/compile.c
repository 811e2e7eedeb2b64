// SPDX-License-Identifier: MIT
/* Rules of trees to a network of states that call each other. */
#include "grammar/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STATES (1u << 20)
#define MAX_DEPTH  100000        /* of a tree: bounds the C stack */

struct compiler {
	const struct gast *ast;
	struct grammar *g;
	int fail;                    /* -ENOMEM or -E2BIG */
	uint32_t *start, *end;       /* per rule, and per repeated body turned into one */
	uint32_t cap_rules;
};

static uint32_t state_add(struct compiler *c)
{
	struct grammar *g = c->g;

	if (g->n_states == g->cap_states) {
		uint32_t cap = g->cap_states ? g->cap_states * 2 : 256;
		struct gstate *p = cap > MAX_STATES ? NULL : realloc(g->states, cap * sizeof(*p));

		if (!p) {
			c->fail = cap > MAX_STATES ? -E2BIG : -ENOMEM;
			return 0;
		}
		g->states = p;
		g->cap_states = cap;
	}
	g->states[g->n_states] = (struct gstate){ .edges = GEDGE_NONE };
	return g->n_states++;
}

static void edge_add(struct compiler *c, uint32_t from, struct gedge e)
{
	struct grammar *g = c->g;

	if (c->fail)
		return;
	if (g->n_edges == g->cap_edges) {
		uint32_t cap = g->cap_edges ? g->cap_edges * 2 : 512;
		struct gedge *p = cap > MAX_STATES * 4 ? NULL : realloc(g->edges, cap * sizeof(*p));

		if (!p) {
			c->fail = cap > MAX_STATES * 4 ? -E2BIG : -ENOMEM;
			return;
		}
		g->edges = p;
		g->cap_edges = cap;
	}
	e.next = g->states[from].edges;
	g->edges[g->n_edges] = e;
	g->states[from].edges = g->n_edges++;
}

static void eps(struct compiler *c, uint32_t from, uint32_t to)
{
	edge_add(c, from, (struct gedge){ .kind = GEDGE_EPS, .to = to });
}

static uint32_t rule_slot(struct compiler *c)
{
	struct grammar *g = c->g;

	if (g->n_rules == c->cap_rules) {
		uint32_t cap = c->cap_rules * 2 + 16;
		uint32_t *s = realloc(c->start, cap * sizeof(*s));
		uint32_t *e;

		if (s)
			c->start = s;
		e = s ? realloc(c->end, cap * sizeof(*e)) : NULL;
		if (!e) {
			c->fail = -ENOMEM;
			return 0;
		}
		c->end = e;
		c->cap_rules = cap;
	}
	c->start[g->n_rules] = state_add(c);
	c->end[g->n_rules] = state_add(c);
	return g->n_rules++;
}

static bool is_small(const struct gast *a, gnode n)
{
	const struct gast_node *x = &a->nodes[n];

	return x->kind == GAST_BYTES || x->kind == GAST_REF || x->kind == GAST_EMPTY;
}

/* Wires @n between the states @from and @to. */
static void wire(struct compiler *c, gnode n, uint32_t from, uint32_t to)
{
	const struct gast_node *x;
	uint32_t mid, rule = 0;

	/* A sequence or a choice leans right: walk it, recurse only to the left. */
	for (;;) {
		if (c->fail)
			return;
		x = &c->ast->nodes[n];
		if (x->kind == GAST_SEQ) {
			mid = state_add(c);
			wire(c, x->a, from, mid);
			from = mid;
			n = x->b;
		} else if (x->kind == GAST_ALT) {
			wire(c, x->a, from, to);
			n = x->b;
		} else {
			break;
		}
	}
	switch (x->kind) {
	case GAST_EMPTY:
		eps(c, from, to);
		break;
	case GAST_NEVER:
		break;
	case GAST_BYTES:
		edge_add(c, from, (struct gedge){ .kind = GEDGE_BYTES, .to = to,
						  .lo = (uint8_t)x->lo, .hi = (uint8_t)x->hi });
		break;
	case GAST_REF:
		edge_add(c, from, (struct gedge){ .kind = GEDGE_CALL, .to = to, .rule = x->lo });
		break;
	case GAST_REPEAT: {
		struct gast_node r = *x;

		/* A body of any size becomes a rule of its own: a repetition is then one edge. */
		if (!is_small(c->ast, r.a)) {
			rule = rule_slot(c);
			if (c->fail)
				return;
			wire(c, r.a, c->start[rule], c->end[rule]);
		}
		for (uint32_t i = 0; i < r.lo || (r.hi != UINT32_MAX && i < r.hi); i++) {
			if (c->fail)
				return;
			if (i >= r.lo)
				eps(c, from, to);
			mid = state_add(c);
			if (rule)
				edge_add(c, from, (struct gedge){ .kind = GEDGE_CALL, .to = mid, .rule = rule });
			else
				wire(c, r.a, from, mid);
			from = mid;
		}
		if (r.hi == UINT32_MAX) {
			/* A state of its own, so that the loop cannot leak into what comes before. */
			mid = state_add(c);
			eps(c, from, mid);
			if (rule)
				edge_add(c, mid, (struct gedge){ .kind = GEDGE_CALL, .to = mid, .rule = rule });
			else
				wire(c, r.a, mid, mid);
			from = mid;
		}
		eps(c, from, to);
		break;
	}
	default:
		break;
	}
}

/* -- checks over the rules, before anything is wired -------------------------- */

struct facts {
	uint8_t *nullable;           /* per rule: can match the empty string */
	uint8_t *ends;               /* per rule: can match some finite string */
};

/* Bit 0: nullable, bit 1: can end, as far as the rules are known so far. */
static int node_facts(const struct gast *a, gnode n, const struct facts *f, int depth)
{
	const struct gast_node *x = &a->nodes[n];
	int l, r;

	if (depth > MAX_DEPTH)
		return 0;
	switch (x->kind) {
	case GAST_EMPTY:
		return 3;
	case GAST_NEVER:
		return 0;
	case GAST_BYTES:
		return 2;
	case GAST_SEQ:
		l = node_facts(a, x->a, f, depth + 1);
		r = node_facts(a, x->b, f, depth + 1);
		return l & r;
	case GAST_ALT:
		l = node_facts(a, x->a, f, depth + 1);
		r = node_facts(a, x->b, f, depth + 1);
		return l | r;
	case GAST_REPEAT:
		return x->lo ? node_facts(a, x->a, f, depth + 1) : 3;
	case GAST_REF:
		return (f->nullable[x->lo] ? 1 : 0) | (f->ends[x->lo] ? 2 : 0);
	default:
		return 0;
	}
}

/*
 * Marks in @left the rules that @n may enter before it has read a byte;
 * returns whether @n is nullable.
 */
static int node_left(const struct gast *a, gnode n, const struct facts *f, uint8_t *left)
{
	const struct gast_node *x = &a->nodes[n];
	int l;

	switch (x->kind) {
	case GAST_SEQ:
		l = node_left(a, x->a, f, left);
		return l ? node_left(a, x->b, f, left) : 0;
	case GAST_ALT:
		l = node_left(a, x->a, f, left);
		return node_left(a, x->b, f, left) | l;
	case GAST_REPEAT:
		l = node_left(a, x->a, f, left);
		return l || x->lo == 0;
	case GAST_REF:
		left[x->lo] = 1;
		return f->nullable[x->lo];
	case GAST_EMPTY:
		return 1;
	default:
		return 0;
	}
}

static const char *rule_name(const struct gast *a, uint32_t r)
{
	return a->rules[r].name ? a->rules[r].name : "(unnamed)";
}

/* Depth-first search for a cycle in "enters without reading". */
static int find_left_cycle(const struct gast *a, const struct facts *f, uint32_t *ret_rule)
{
	uint32_t n = a->n_rules, top;
	uint8_t *colour = calloc(n, 1), *left = malloc(n);
	uint32_t *stack = malloc(n * sizeof(*stack)), *at = calloc(n, sizeof(*at));
	uint8_t **lists = calloc(n, sizeof(*lists));
	int found = 0;

	if (!colour || !left || !stack || !at || !lists) {
		found = -ENOMEM;
		goto out;
	}
	for (uint32_t s = 0; s < n && !found; s++) {
		if (colour[s])
			continue;
		top = 0;
		stack[top++] = s;
		colour[s] = 1;
		while (top && !found) {
			uint32_t r = stack[top - 1];

			if (!lists[r]) {
				lists[r] = calloc(n, 1);
				if (!lists[r]) {
					found = -ENOMEM;
					break;
				}
				node_left(a, a->rules[r].body, f, lists[r]);
			}
			while (at[r] < n && !lists[r][at[r]])
				at[r]++;
			if (at[r] == n) {
				colour[r] = 2;
				free(lists[r]);
				lists[r] = NULL;
				top--;
				continue;
			}
			uint32_t to = at[r]++;

			if (colour[to] == 1) {
				*ret_rule = to;
				found = 1;
			} else if (!colour[to]) {
				colour[to] = 1;
				stack[top++] = to;
			}
		}
	}
out:
	for (uint32_t i = 0; lists && i < n; i++)
		free(lists[i]);
	free(lists);
	free(at);
	free(stack);
	free(left);
	free(colour);
	return found;
}

static int check_rules(const struct gast *a, struct hearth_err *err)
{
	struct facts f = { calloc(a->n_rules, 1), calloc(a->n_rules, 1) };
	uint32_t bad = 0;
	bool changed = true;
	int rc = 0;

	if (!f.nullable || !f.ends) {
		rc = err_set(err, -ENOMEM, "out of memory for a grammar of %u rules", a->n_rules);
		goto out;
	}
	for (uint32_t i = 0; i < a->n_rules; i++) {
		if (!a->rules[i].defined) {
			rc = err_set(err, -EINVAL, "grammar rule \"%s\" is used but not defined", rule_name(a, i));
			goto out;
		}
	}
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < a->n_rules; i++) {
			int v = node_facts(a, a->rules[i].body, &f, 0);

			if ((v & 1) > f.nullable[i] || v >> 1 > f.ends[i])
				changed = true;
			f.nullable[i] |= v & 1;
			f.ends[i] |= v >> 1;
		}
	}
	if (!f.ends[a->root]) {
		rc = err_set(err, -EINVAL, "grammar rule \"%s\" can never end: no text satisfies it",
			     rule_name(a, a->root));
		goto out;
	}
	rc = find_left_cycle(a, &f, &bad);
	if (rc == 1)
		rc = err_set(err, -EINVAL, "grammar rule \"%s\" is left-recursive: it may enter itself before reading a character; write it with a repetition",
			     rule_name(a, bad));
	else if (rc)
		err_set(err, rc, "out of memory for a grammar of %u rules", a->n_rules);
out:
	free(f.nullable);
	free(f.ends);
	return rc;
}

/*
 * How far each state is from the end of its rule, and the way: relaxed until
 * nothing changes. States of a sequence come in its order, so that walking them
 * backwards settles nearly everything at once. A way is changed only for a
 * shorter one, so following ways never goes round in a circle.
 */
static void find_ways(struct grammar *g)
{
	bool changed = true;

	for (uint32_t i = 0; i < g->n_states; i++) {
		g->states[i].need = g->states[i].is_end ? 0 : NEED_NONE;
		g->states[i].best = GEDGE_NONE;
	}
	while (changed) {
		changed = false;
		for (uint32_t i = g->n_states; i-- > 0;) {
			struct gstate *s = &g->states[i];

			for (uint32_t e = s->edges; e != GEDGE_NONE && s->need; e = g->edges[e].next) {
				const struct gedge *x = &g->edges[e];
				uint32_t n = g->states[x->to].need;

				n += x->kind == GEDGE_BYTES ? 1 : x->kind == GEDGE_CALL ? g->states[g->rule_start[x->rule]].need : 0;
				if (n < s->need) {
					s->need = n;
					s->best = e;
					changed = true;
				}
			}
		}
	}
}

int grammar_compile(const struct gast *ast, struct grammar **ret, struct hearth_err *err)
{
	struct compiler c = { .ast = ast };
	struct grammar *g;
	int rc = gast_status(ast);

	if (rc)
		return err_set(err, rc, rc == -E2BIG ? "the grammar is too large" : "out of memory for the grammar");
	if (!ast->n_rules)
		return err_set(err, -EINVAL, "the grammar has no rule");
	rc = check_rules(ast, err);
	if (rc)
		return rc;
	g = calloc(1, sizeof(*g));
	if (!g)
		return err_set(err, -ENOMEM, "out of memory for the grammar");
	atomic_init(&g->refs, 1);
	c.g = g;
	for (uint32_t i = 0; i < ast->n_rules && !c.fail; i++)
		rule_slot(&c);
	for (uint32_t i = 0; i < ast->n_rules && !c.fail; i++)
		wire(&c, ast->rules[i].body, c.start[i], c.end[i]);
	if (c.fail) {
		rc = err_set(err, c.fail, c.fail == -E2BIG ?
			     "the grammar needs more than %u states; lower its repetition bounds" :
			     "out of memory for the grammar", MAX_STATES);
		free(c.start);
		free(c.end);
		grammar_unref(g);
		return rc;
	}
	for (uint32_t i = 0; i < g->n_rules; i++)
		g->states[c.end[i]].is_end = 1;
	for (uint32_t i = 0; i < g->n_states; i++)
		g->states[i].only_end = g->states[i].is_end && g->states[i].edges == GEDGE_NONE;
	/* A state whose only way on is an empty step to a rule's end is as good as that end. */
	for (uint32_t i = g->n_states; i-- > 0;) {
		uint32_t e = g->states[i].edges;

		if (!g->states[i].is_end && e != GEDGE_NONE && g->edges[e].next == GEDGE_NONE &&
		    g->edges[e].kind == GEDGE_EPS && g->states[g->edges[e].to].only_end)
			g->states[i].only_end = 1;
	}
	g->root = c.start[ast->root];
	g->rule_start = c.start;
	free(c.end);
	find_ways(g);
	*ret = g;
	return 0;
}

struct grammar *grammar_ref(struct grammar *g)
{
	atomic_fetch_add_explicit(&g->refs, 1, memory_order_relaxed);
	return g;
}

void grammar_unref(struct grammar *g)
{
	if (!g || atomic_fetch_sub_explicit(&g->refs, 1, memory_order_acq_rel) != 1)
		return;
	free(g->states);
	free(g->edges);
	free(g->rule_start);
	free(g);
}
