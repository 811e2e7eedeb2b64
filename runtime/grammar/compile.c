// SPDX-License-Identifier: MIT
/* Rules of trees to a network of states that call each other. */
#include "grammar/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_STATES (1u << 20)

/* A node to be wired. What a client sends may be deep: it is kept on the heap, not on the C stack. */
struct task {
	gnode node;
	uint32_t from, to;
};

struct compiler {
	const struct gast *ast;
	struct grammar *g;
	int fail;                    /* -ENOMEM or -E2BIG */
	uint32_t *start, *end;       /* per rule, and per repeated body turned into one */
	uint32_t cap_rules;
	struct task *task;
	uint32_t n_tasks, cap_tasks;
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

static void later(struct compiler *c, gnode n, uint32_t from, uint32_t to)
{
	if (c->n_tasks == c->cap_tasks) {
		uint32_t cap = c->cap_tasks * 2 + 256;
		struct task *p = realloc(c->task, cap * sizeof(*p));

		if (!p) {
			c->fail = -ENOMEM;
			return;
		}
		c->task = p;
		c->cap_tasks = cap;
	}
	c->task[c->n_tasks++] = (struct task){ n, from, to };
}

static void wire_repeat(struct compiler *c, const struct gast_node *r, uint32_t from, uint32_t to)
{
	uint32_t mid, rule = 0;

	/* A body of any size becomes a rule of its own: a repetition is then one edge. */
	if (!is_small(c->ast, r->a)) {
		rule = rule_slot(c);
		if (c->fail)
			return;
		later(c, r->a, c->start[rule], c->end[rule]);
	}
	for (uint32_t i = 0; i < r->lo || (r->hi != UINT32_MAX && i < r->hi); i++) {
		if (c->fail)
			return;
		if (i >= r->lo)
			eps(c, from, to);
		mid = state_add(c);
		if (rule)
			edge_add(c, from, (struct gedge){ .kind = GEDGE_CALL, .to = mid, .rule = rule });
		else
			later(c, r->a, from, mid);
		from = mid;
	}
	if (r->hi == UINT32_MAX) {
		/* A state of its own, so that the loop cannot leak into what comes before. */
		mid = state_add(c);
		eps(c, from, mid);
		if (rule)
			edge_add(c, mid, (struct gedge){ .kind = GEDGE_CALL, .to = mid, .rule = rule });
		else
			later(c, r->a, mid, mid);
		from = mid;
	}
	eps(c, from, to);
}

/* Wires @n between the states @from and @to. */
static void wire(struct compiler *c, gnode n, uint32_t from, uint32_t to)
{
	later(c, n, from, to);
	while (c->n_tasks && !c->fail) {
		const struct task t = c->task[--c->n_tasks];
		const struct gast_node *x = &c->ast->nodes[t.node];
		uint32_t mid;

		switch (x->kind) {
		case GAST_SEQ:
			mid = state_add(c);
			later(c, x->b, mid, t.to);
			later(c, x->a, t.from, mid);
			break;
		case GAST_ALT:
			later(c, x->b, t.from, t.to);
			later(c, x->a, t.from, t.to);
			break;
		case GAST_EMPTY:
			eps(c, t.from, t.to);
			break;
		case GAST_BYTES:
			edge_add(c, t.from, (struct gedge){ .kind = GEDGE_BYTES, .to = t.to,
							    .lo = (uint8_t)x->lo, .hi = (uint8_t)x->hi });
			break;
		case GAST_REF:
			edge_add(c, t.from, (struct gedge){ .kind = GEDGE_CALL, .to = t.to, .rule = x->lo });
			break;
		case GAST_REPEAT:
			wire_repeat(c, x, t.from, t.to);
			break;
		default:
			break;
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
	rc = gcompile_check(ast, err);
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
		free(c.task);
		grammar_unref(g);
		return rc;
	}
	free(c.task);
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
	rc = gcompile_ways(g);
	if (rc) {
		grammar_unref(g);
		return err_set(err, rc, "out of memory for the grammar");
	}
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
