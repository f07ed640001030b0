/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A graph made flat: steps in an order in which each comes behind what it depends on. Replays run
 * them one after the other; where the graph forks, only the virtual times run side by side.
 */
#include "test/fake/cuda_graph.h"

#include <stdlib.h>
#include <string.h>

struct builder {
    struct program *program;
    size_t room, deps_room;
};

static struct step *add_step(struct builder *b)
{
    struct program *program = b->program;
    if (program->n == b->room) {
        b->room = b->room == 0 ? 16 : 2 * b->room;
        program->steps = sim_grow(program->steps, b->room, sizeof *program->steps);
    }
    struct step *step = &program->steps[program->n++];
    memset(step, 0, sizeof *step);
    step->event_slot = -1;
    step->first_dep = (uint32_t)program->ndeps;
    return step;
}

static void add_dep(struct builder *b, uint32_t on)
{
    struct program *program = b->program;
    if (program->ndeps == b->deps_room) {
        b->deps_room = b->deps_room == 0 ? 16 : 2 * b->deps_room;
        program->deps = sim_grow(program->deps, b->deps_room, sizeof *program->deps);
    }
    program->deps[program->ndeps++] = on;
    program->steps[program->n - 1].ndeps++;
}

static void add_graph(struct builder *b, CUgraph graph, const uint32_t *outer, size_t nouter);

/* A child graph: its roots wait for what the node waits for; a join stands for its end. */
static void add_child(struct builder *b, CUgraph child, const uint32_t *deps, size_t n)
{
    size_t first = b->program->n;
    add_graph(b, child, deps, n);
    size_t end = b->program->n;
    bool *has_dependent = sim_alloc(end - first + 1);
    for (size_t i = first; i < end; i++) {
        const struct step *step = &b->program->steps[i];
        for (uint32_t k = 0; k < step->ndeps; k++) {
            uint32_t on = b->program->deps[step->first_dep + k];
            if (on >= first) {
                has_dependent[on - first] = true;
            }
        }
    }
    add_step(b);
    for (size_t i = first; i < end; i++) {
        if (!has_dependent[i - first]) {
            add_dep(b, (uint32_t)i);
        }
    }
    for (size_t i = 0; end == first && i < n; i++) {
        add_dep(b, deps[i]);
    }
    free(has_dependent);
}

static void add_node(struct builder *b, CUgraphNode node, const uint32_t *deps, size_t n)
{
    if (node->child != NULL) {
        add_child(b, node->child, deps, n);
        return;
    }
    struct step *step = add_step(b);
    step->work = node->work != NULL ? work_ref(node->work) : NULL;
    step->gap_ns = step->work != NULL && step->work->kind != WORK_EMPTY ? COST_GAP_NS : 0;
    for (size_t i = 0; i < node->ndeps; i++) {
        if (node->edges[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) {
            step->gap_ns = COST_GAP_PDL_NS;
        }
    }
    if (step->work != NULL && (step->work->kind == WORK_RECORD || step->work->kind == WORK_WAIT)) {
        step->event_slot = (int32_t)b->program->nevents++;
        step->gap_ns = 0;
    }
    if (node->nbodies > 0) {
        b->program->has_conditions = true;
        step->condition = node->condition;
        atomic_fetch_add(&step->condition->refs, 1);
        step->condition_type = node->condition_type;
        step->bodies = sim_alloc(node->nbodies * sizeof(struct program *));
        step->nbodies = node->nbodies;
        step->gap_ns = COST_GAP_NS;
        for (size_t i = 0; i < node->nbodies; i++) {
            step->bodies[i] = program_compile(node->bodies[i]);
        }
    }
    for (size_t i = 0; i < n; i++) {
        add_dep(b, deps[i]);
    }
}

static void add_graph(struct builder *b, CUgraph graph, const uint32_t *outer, size_t nouter)
{
    CUgraphNode *order = sim_alloc((graph->n + 1) * sizeof *order);
    uint32_t *last = sim_alloc((graph->n + 1) * sizeof *last); /* step that ends each node */
    uint32_t *deps = NULL;
    graph_order(graph, order);
    for (size_t i = 0; i < graph->n; i++) {
        CUgraphNode node = order[i];
        deps = sim_grow(deps, node->ndeps + 1, sizeof *deps);
        for (size_t k = 0; k < node->ndeps; k++) {
            deps[k] = last[node->deps[k]->index];
        }
        if (node->ndeps == 0) {
            add_node(b, node, outer, nouter);
        } else {
            add_node(b, node, deps, node->ndeps);
        }
        last[node->index] = (uint32_t)b->program->n - 1;
    }
    free(order);
    free(last);
    free(deps);
}

struct program *program_compile(CUgraph graph)
{
    struct builder b = {.program = sim_alloc(sizeof *b.program)};
    struct program *program = b.program;
    atomic_init(&program->refs, 1);
    add_graph(&b, graph, NULL, 0);
    program->ends = sim_alloc((program->n + 1) * sizeof *program->ends);
    program->linear = true;
    for (size_t i = 0; i < program->n; i++) {
        const struct step *step = &program->steps[i];
        program->linear = program->linear &&
                          (i == 0 ? step->ndeps == 0
                                  : step->ndeps == 1 && program->deps[step->first_dep] == i - 1);
    }
    return program;
}

void program_unref(struct program *program)
{
    if (atomic_fetch_sub_explicit(&program->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (size_t i = 0; i < program->n; i++) {
        struct step *step = &program->steps[i];
        if (step->work != NULL) {
            work_unref(step->work);
        }
        for (size_t k = 0; k < step->nbodies; k++) {
            program_unref(step->bodies[k]);
        }
        free(step->bodies);
        if (step->condition != NULL && atomic_fetch_sub(&step->condition->refs, 1) == 1) {
            free(step->condition);
        }
    }
    free(program->steps);
    free(program->deps);
    free(program->ends);
    free(program);
}

/* ---- running ---- */

void program_reset(struct program *program)
{
    for (size_t i = 0; program->has_conditions && i < program->n; i++) {
        const struct step *step = &program->steps[i];
        if (step->nbodies > 0 && step->condition->reset) {
            atomic_store(&step->condition->value, step->condition->initial);
        }
        for (size_t k = 0; k < step->nbodies; k++) {
            program_reset(step->bodies[k]);
        }
    }
}

static uint64_t run_condition(const struct step *step, CUcontext ctx, uint64_t now_ns)
{
    unsigned value = atomic_load(&step->condition->value);
    switch (step->condition_type) {
    case CU_GRAPH_COND_TYPE_IF:
        if (value != 0) {
            return program_run(step->bodies[0], ctx, now_ns, NULL);
        }
        return step->nbodies > 1 ? program_run(step->bodies[1], ctx, now_ns, NULL) : now_ns;
    case CU_GRAPH_COND_TYPE_WHILE:
        while (atomic_load(&step->condition->value) != 0 &&
               atomic_load(&ctx->sticky) == CUDA_SUCCESS) {
            now_ns = program_run(step->bodies[0], ctx, now_ns, NULL) + COST_GAP_NS;
        }
        return now_ns;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return value < step->nbodies ? program_run(step->bodies[value], ctx, now_ns, NULL) : now_ns;
    }
    return now_ns;
}

static uint64_t run_step(const struct step *step, CUcontext ctx, uint64_t now_ns,
                         struct mark **marks)
{
    if (step->nbodies > 0) {
        return run_condition(step, ctx, now_ns);
    }
    if (step->work == NULL) {
        return now_ns;
    }
    return work_run(step->work, ctx, now_ns,
                    step->event_slot >= 0 ? marks[step->event_slot] : NULL);
}

uint64_t program_run(struct program *program, CUcontext ctx, uint64_t start_ns, struct mark **marks)
{
    uint64_t end_ns = start_ns;
    if (program->linear) {
        for (size_t i = 0; i < program->n; i++) {
            const struct step *step = &program->steps[i];
            end_ns = run_step(step, ctx, i == 0 ? end_ns : end_ns + step->gap_ns, marks);
        }
        return end_ns;
    }
    for (size_t i = 0; i < program->n; i++) {
        const struct step *step = &program->steps[i];
        uint64_t now_ns = start_ns;
        for (uint32_t k = 0; k < step->ndeps; k++) {
            uint64_t end = program->ends[program->deps[step->first_dep + k]] + step->gap_ns;
            now_ns = end > now_ns ? end : now_ns;
        }
        program->ends[i] = run_step(step, ctx, now_ns, marks);
        end_ns = program->ends[i] > end_ns ? program->ends[i] : end_ns;
    }
    return end_ns;
}
