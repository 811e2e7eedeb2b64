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

/* -- checks over the rules, before anything is wired -------------------------- */

struct facts {
	/* bit 0: can match the empty string, bit 1: can match some finite string */
	uint8_t *rule;               /* per rule */
	uint8_t *node;               /* per node */
};

static uint8_t node_fact(const struct gast *a, const struct facts *f, gnode n)
{
	const struct gast_node *x = &a->nodes[n];

	switch (x->kind) {
	case GAST_EMPTY:
		return 3;
	case GAST_BYTES:
		return 2;
	case GAST_SEQ:
		return f->node[x->a] & f->node[x->b];
	case GAST_ALT:
		return f->node[x->a] | f->node[x->b];
	case GAST_REPEAT:
		return x->lo ? f->node[x->a] : 3;
	case GAST_REF:
		return f->rule[x->lo];
	default:
		return 0;
	}
}

/* Who has to hear of a node that is known better now: lists by index, GEDGE_NONE ends them. */
struct heard {
	uint32_t *parent, *next;     /* node: the first of those made of it, twice the node, or with 1 for its right; and the next */
	uint32_t *body, *same;       /* node: the first rule that it is; rule: the next */
	uint32_t *ref, *again;       /* rule: the first node that refers to it; node: the next */
	gnode *todo;
	uint32_t n;
};

static void better(struct facts *f, struct heard *h, gnode n, uint8_t v)
{
	if ((f->node[n] | v) == f->node[n])
		return;
	f->node[n] |= v;
	h->todo[h->n++] = n;
}

static void child(struct heard *h, gnode of, uint32_t link)
{
	h->next[link] = h->parent[of];
	h->parent[of] = link;
}

/* What a rule's body is, the rule is, and so is every reference to it. */
static void rule_known(const struct gast *a, struct facts *f, struct heard *h, uint32_t r)
{
	f->rule[r] = f->node[a->rules[r].body];
	for (uint32_t q = h->ref[r]; q != GEDGE_NONE; q = h->again[q])
		better(f, h, q, f->rule[r]);
}

/*
 * The facts of all nodes and rules. Each can become true twice at most, and is
 * then told to those that stand on it: the time does not depend on how rules
 * are ordered.
 */
static int find_facts(const struct gast *a, struct facts *f)
{
	const size_t n = a->n_nodes + 1, nr = a->n_rules + 1;
	struct heard h = { .n = 0 };
	uint32_t *mem = malloc((n * 7 + nr * 2) * sizeof(*mem));

	if (!mem)
		return -ENOMEM;
	memset(mem, 0xff, (n * 7 + nr * 2) * sizeof(*mem));
	h.parent = mem;
	h.next = h.parent + n;
	h.body = h.next + 2 * n;
	h.again = h.body + n;
	h.todo = h.again + n;        /* twice a node, at most */
	h.same = h.todo + 2 * n;
	h.ref = h.same + nr;
	/* What a node is made of was added before it. */
	for (uint32_t i = 0; i < a->n_nodes; i++) {
		const struct gast_node *x = &a->nodes[i];

		if (x->kind == GAST_SEQ || x->kind == GAST_ALT || x->kind == GAST_REPEAT)
			child(&h, x->a, 2 * i);
		if (x->kind == GAST_SEQ || x->kind == GAST_ALT)
			child(&h, x->b, 2 * i + 1);
		if (x->kind == GAST_REF) {
			h.again[i] = h.ref[x->lo];
			h.ref[x->lo] = i;
		}
		f->node[i] = node_fact(a, f, i);
	}
	for (uint32_t r = 0; r < a->n_rules; r++) {
		h.same[r] = h.body[a->rules[r].body];
		h.body[a->rules[r].body] = r;
	}
	for (uint32_t r = 0; r < a->n_rules; r++)
		rule_known(a, f, &h, r);
	while (h.n) {
		const gnode i = h.todo[--h.n];

		for (uint32_t l = h.parent[i]; l != GEDGE_NONE; l = h.next[l])
			better(f, &h, l / 2, node_fact(a, f, l / 2));
		for (uint32_t r = h.body[i]; r != GEDGE_NONE; r = h.same[r])
			rule_known(a, f, &h, r);
	}
	free(mem);
	return 0;
}

/* Marks in @left, a bit each, the rules that @n may enter before it has read a byte; @todo has room for every node. */
static void node_left(const struct gast *a, gnode n, const struct facts *f, uint8_t *left, gnode *todo)
{
	uint32_t k = 0;

	todo[k++] = n;
	while (k) {
		const struct gast_node *x = &a->nodes[todo[--k]];

		/* Left first, so that no more than one node of each level waits. */
		if ((x->kind == GAST_SEQ && f->node[x->a] & 1) || x->kind == GAST_ALT)
			todo[k++] = x->b;
		if (x->kind == GAST_SEQ || x->kind == GAST_ALT || x->kind == GAST_REPEAT)
			todo[k++] = x->a;
		else if (x->kind == GAST_REF)
			left[x->lo / 8] |= (uint8_t)(1u << x->lo % 8);
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
	uint8_t *colour = calloc(n, 1);
	gnode *todo = malloc((a->n_nodes + 1) * sizeof(*todo));
	uint32_t *stack = malloc(n * sizeof(*stack)), *at = calloc(n, sizeof(*at));
	uint8_t **lists = calloc(n, sizeof(*lists));
	int found = 0;

	if (!colour || !todo || !stack || !at || !lists) {
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
				lists[r] = calloc(n / 8 + 1, 1);
				if (!lists[r]) {
					found = -ENOMEM;
					break;
				}
				node_left(a, a->rules[r].body, f, lists[r], todo);
			}
			while (at[r] < n && !(lists[r][at[r] / 8] >> at[r] % 8 & 1))
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
	free(todo);
	free(colour);
	return found;
}

static int check_rules(const struct gast *a, struct hearth_err *err)
{
	struct facts f = { calloc(a->n_rules, 1), calloc(a->n_nodes + 1, 1) };
	uint32_t bad = 0;
	int rc = 0;

	if (!f.rule || !f.node) {
		rc = err_set(err, -ENOMEM, "out of memory for a grammar of %u rules", a->n_rules);
		goto out;
	}
	for (uint32_t i = 0; i < a->n_rules; i++) {
		if (!a->rules[i].defined) {
			rc = err_set(err, -EINVAL, "grammar rule \"%s\" is used but not defined", rule_name(a, i));
			goto out;
		}
	}
	rc = find_facts(a, &f);
	if (rc) {
		err_set(err, rc, "out of memory for a grammar of %u rules", a->n_rules);
		goto out;
	}
	if (!(f.rule[a->root] & 2)) {
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
	free(f.rule);
	free(f.node);
	return rc;
}

/* -- the way to the end ---------------------------------------------------------- */

struct near {
	uint32_t need, state;
};

struct ways {
	struct grammar *g;
	uint32_t *src, *next, *into; /* edge: whose it is, the next that leads to the same state; state: the first */
	uint32_t *same, *calls;      /* edge: the next call of the same rule; rule: the first */
	uint32_t *rule_at;           /* state: the rule that begins there, or GEDGE_NONE */
	bool *done;
	struct near *heap;
	size_t n, cap;
};

static int near_put(struct ways *w, uint32_t need, uint32_t state)
{
	size_t i = w->n++;

	if (i == w->cap) {
		size_t cap = w->cap * 2 + 1024;
		struct near *p = realloc(w->heap, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		w->heap = p;
		w->cap = cap;
	}
	for (; i && w->heap[(i - 1) / 2].need > need; i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = (struct near){ need, state };
	return 0;
}

static struct near near_take(struct ways *w)
{
	const struct near first = w->heap[0], last = w->heap[--w->n];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < w->n) {
		k += k + 1 < w->n && w->heap[k + 1].need < w->heap[k].need;
		if (w->heap[k].need >= last.need)
			break;
		w->heap[i] = w->heap[k];
		i = k;
	}
	w->heap[i] = last;
	return first;
}

/* Edge @e ends @n bytes from the end of its rule. */
static int nearer(struct ways *w, uint32_t e, uint32_t n)
{
	struct gstate *s = &w->g->states[w->src[e]];

	if (n >= s->need)
		return 0;
	s->need = n;
	s->best = e;
	return near_put(w, n, w->src[e]);
}

/* How far @state is, is known now: so is how far those are that lead to it, and the callers of a rule that begins there. */
static int arrived(struct ways *w, uint32_t state)
{
	const struct grammar *g = w->g;
	const uint32_t n = g->states[state].need, rule = w->rule_at[state];
	int rc = 0;

	w->done[state] = true;
	for (uint32_t e = w->into[state]; e != GEDGE_NONE && !rc; e = w->next[e]) {
		const struct gedge *x = &g->edges[e];
		const uint32_t start = x->kind == GEDGE_CALL ? g->rule_start[x->rule] : state;

		if (w->done[start])
			rc = nearer(w, e, n + (x->kind == GEDGE_BYTES ? 1 : x->kind == GEDGE_CALL ? g->states[start].need : 0));
	}
	for (uint32_t e = rule == GEDGE_NONE ? GEDGE_NONE : w->calls[rule]; e != GEDGE_NONE && !rc; e = w->same[e])
		if (w->done[g->edges[e].to])
			rc = nearer(w, e, n + g->states[g->edges[e].to].need);
	return rc;
}

/*
 * How far each state is from the end of its rule, and the way. The nearest
 * first (a call is never nearer than what it calls), so each is settled once,
 * and following ways never goes round in a circle.
 */
static int find_ways(struct grammar *g)
{
	const size_t ns = g->n_states + 1, ne = g->n_edges + 1, nr = g->n_rules + 1;
	struct ways w = { .g = g };
	int rc = 0;

	w.src = malloc(ne * 3 * sizeof(uint32_t));
	w.into = malloc(ns * 2 * sizeof(uint32_t));
	w.calls = malloc(nr * sizeof(uint32_t));
	w.done = calloc(ns, sizeof(bool));
	if (!w.src || !w.into || !w.calls || !w.done) {
		rc = -ENOMEM;
		goto out;
	}
	w.next = w.src + ne;
	w.same = w.next + ne;
	w.rule_at = w.into + ns;
	memset(w.into, 0xff, ns * 2 * sizeof(uint32_t));
	memset(w.calls, 0xff, nr * sizeof(uint32_t));
	for (uint32_t i = 0; i < g->n_rules; i++)
		w.rule_at[g->rule_start[i]] = i;
	for (uint32_t i = 0; i < g->n_states && !rc; i++) {
		for (uint32_t e = g->states[i].edges; e != GEDGE_NONE; e = g->edges[e].next) {
			const struct gedge *x = &g->edges[e];

			w.src[e] = i;
			w.next[e] = w.into[x->to];
			w.into[x->to] = e;
			if (x->kind == GEDGE_CALL) {
				w.same[e] = w.calls[x->rule];
				w.calls[x->rule] = e;
			}
		}
		g->states[i].need = g->states[i].is_end ? 0 : NEED_NONE;
		g->states[i].best = GEDGE_NONE;
		if (g->states[i].is_end)
			rc = near_put(&w, 0, i);
	}
	while (w.n && !rc) {
		const struct near x = near_take(&w);

		if (!w.done[x.state])
			rc = arrived(&w, x.state);
	}
out:
	free(w.src);
	free(w.into);
	free(w.calls);
	free(w.done);
	free(w.heap);
	return rc;
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
	rc = find_ways(g);
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
