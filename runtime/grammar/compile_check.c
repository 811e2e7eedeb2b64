// SPDX-License-Identifier: MIT
/* Checks over the rules, before anything is wired: each is defined, can end, and does not enter itself first. */
#include "grammar/compile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int gcompile_check(const struct gast *a, struct hearth_err *err)
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
