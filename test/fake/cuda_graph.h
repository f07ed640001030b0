/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of the simulated driver: nodes, executable copies, the flat program that a replay runs. */
#ifndef NCCLSHIM_TEST_FAKE_CUDA_GRAPH_H
#define NCCLSHIM_TEST_FAKE_CUDA_GRAPH_H

#include "test/fake/cuda_sim.h"

/* The value that a conditional node looks at; shared by a graph and its copies. */
struct condition {
    atomic_int refs;
    atomic_uint value;
    unsigned initial;
    bool reset; /* set to `initial` at each launch */
};

struct CUgraphNode_st {
    uint64_t id;
    uint64_t origin; /* id of the node that this one was cloned from, else 0 */
    CUgraphNodeType type;
    CUgraph graph;
    struct work *work;
    CUgraph child;   /* child graph */
    CUgraph *bodies; /* conditional */
    size_t nbodies;
    CUgraphConditionalNodeType condition_type;
    struct condition *condition;
    CUgraphNode *deps;
    CUgraphEdgeData *edges;
    size_t ndeps;
    size_t index; /* in graph->nodes */
    uint32_t mark;
};

struct CUgraph_st {
    CUgraphNode *nodes; /* in order of creation */
    size_t n, room;
    CUuserObject *objects; /* one entry a reference */
    size_t nobjects;
    struct condition **conditions;
    size_t nconditions;
    bool hidden;             /* an executable's copy: its nodes are no handles */
    bool owned;              /* belongs to a node: the user can't destroy it */
    struct capture *capture; /* being captured into: the user can't destroy it either */
};

struct CUuserObject_st {
    atomic_int refs;
    CUhostFn destroy;
    void *ptr;
};

void user_object_unref(CUuserObject object, unsigned count);

/* In sim_lock, unless hidden: a worker may free a hidden one. */
CUgraph graph_new(bool hidden);
void graph_free(CUgraph graph);
void graph_free_node(CUgraphNode node);
/* A deep copy; nodes remember where they come from. */
CUgraph graph_clone(CUgraph graph, bool hidden);
CUresult graph_add(CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                   size_t ndeps, CUgraphNodeType type, struct work *work, CUgraphNode *out);
/* Order in which each node comes behind its dependencies; false if there is a cycle. */
bool graph_order(CUgraph graph, CUgraphNode *order);
/* Is every node of `wanted` reachable backwards from `from`? */
bool graph_reaches(CUgraph graph, const CUgraphNode *from, size_t nfrom, const CUgraphNode *wanted,
                   size_t nwanted);
bool edge_is_plain(const CUgraphEdgeData *edge);

/* ---- program.c ---- */

struct step {
    struct work *work; /* NULL: only a join */
    uint32_t first_dep, ndeps;
    uint32_t gap_ns;
    int32_t event_slot; /* -1: no event */
    struct program **bodies;
    size_t nbodies;
    CUgraphConditionalNodeType condition_type;
    struct condition *condition;
};

struct program {
    atomic_int refs;
    struct step *steps;
    uint32_t *deps;
    uint64_t *ends;
    size_t n, ndeps, nevents;
    bool linear, has_conditions;
};

struct program *program_compile(CUgraph graph);
void program_unref(struct program *program);
void program_reset(struct program *program); /* conditions, at the begin of a launch */
uint64_t program_run(struct program *program, CUcontext ctx, uint64_t start_ns,
                     struct mark **marks);

/* ---- exec.c ---- */

struct CUgraphExec_st {
    atomic_int refs;
    uint64_t flags;
    CUgraph graph;           /* our copy; never shown to the user */
    struct program *program; /* NULL: graph has changed since */
    struct mark *last;
    CUstream last_stream;
};

void exec_unref(CUgraphExec exec);
void exec_changed(CUgraphExec exec); /* its graph has new work; in sim_lock */

#endif
