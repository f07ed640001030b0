/* SPDX-License-Identifier: Apache-2.0 */
/* Executable graphs: instantiating, launching, updating. */
#include "test/fake/cuda_graph.h"

#include <stdlib.h>

void exec_unref(CUgraphExec exec)
{
    if (atomic_fetch_sub(&exec->refs, 1) == 1) {
        graph_free(exec->graph);
        if (exec->program != NULL) {
            program_unref(exec->program);
        }
        mark_unref(exec->last);
        if (exec->last_stream != NULL) {
            stream_unref(exec->last_stream);
        }
        free(exec);
    }
}

void exec_changed(CUgraphExec exec)
{
    /* Launches under way keep the old program. */
    program_unref(exec->program);
    exec->program = program_compile(exec->graph);
}

/* ---- instantiating ---- */

static CUresult instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    const unsigned long long known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                     CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                     CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if (out == NULL || (flags & ~known) != 0 || !handle_is(graph, KIND_GRAPH) ||
        graph->capture != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUgraphNode *order = sim_alloc((graph->n + 1) * sizeof *order);
    bool acyclic = graph_order(graph, order);
    free(order);
    if (!acyclic) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUgraphExec exec = sim_alloc(sizeof *exec);
    atomic_init(&exec->refs, 1);
    exec->flags = flags;
    exec->graph = graph_clone(graph, true);
    exec->program = program_compile(exec->graph);
    handle_add(exec, KIND_EXEC);
    *out = exec;
    return CUDA_SUCCESS;
}

static CUresult do_instantiate(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    CUcontext ctx;
    TRY(ctx_current(&ctx));
    sim_lock();
    CUresult result = capture_check_unsafe();
    sim_unlock();
    TRY(result);
    ctx_wait_for_device(ctx->device);
    sim_lock();
    result = instantiate(out, graph, flags);
    sim_unlock();
    return result;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log,
                               size_t log_bytes)
{
    ENTER(cuGraphInstantiate_v2);
    if (error_node != NULL) {
        *error_node = NULL;
    }
    if (log != NULL && log_bytes > 0) {
        log[0] = '\0';
    }
    return do_instantiate(out, graph, 0);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
    ENTER(cuGraphInstantiateWithFlags);
    return do_instantiate(out, graph, flags);
}

static CUresult do_cuGraphInstantiateWithParams(CUgraphExec *out, CUgraph graph,
                                                CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                                                bool per_thread)
{
    (void)per_thread;
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult result = do_instantiate(out, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}
WITH_VARIANT(cuGraphInstantiateWithParams, _ptsz,
             (CUgraphExec * out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params), out, graph,
             params)

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    ENTER(cuGraphExecDestroy);
    sim_lock();
    CUresult result =
        handle_is(exec, KIND_EXEC) ? capture_check_unsafe() : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        handle_drop(exec);
        exec_unref(exec);
    }
    sim_unlock();
    return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    ENTER(cuGraphExecGetFlags);
    sim_lock();
    bool known = flags != NULL && handle_is(exec, KIND_EXEC);
    if (known) {
        *flags = exec->flags;
    }
    sim_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- launching ---- */

/*
 * The marks of the event nodes: a wait takes what is recorded now, a record gives the event a new
 * mark now, so that whoever waits for the event after this call waits for this launch.
 */
static struct mark **take_marks(const struct program *program)
{
    struct mark **marks = NULL;
    if (program->nevents > 0) {
        marks = sim_alloc(program->nevents * sizeof *marks);
    }
    for (size_t i = 0; marks != NULL && i < program->n; i++) {
        const struct step *step = &program->steps[i];
        if (step->event_slot < 0) {
            continue;
        }
        CUevent event = step->work->u.event;
        if (step->work->kind == WORK_RECORD) {
            marks[step->event_slot] = event_renew(event);
        } else if (event->last != NULL) {
            marks[step->event_slot] = mark_ref(event->last);
        }
    }
    return marks;
}

static CUresult launch(CUgraphExec exec, CUstream stream)
{
    if (exec->last != NULL && exec->last_stream != stream) {
        /* An executable graph never runs beside itself. */
        TRY(stream_put_wait(stream, mark_ref(exec->last)));
    }
    struct op *op = op_new(OP_GRAPH);
    op->program = exec->program;
    atomic_fetch_add(&op->program->refs, 1);
    op->exec = exec;
    atomic_fetch_add(&exec->refs, 1);
    op->marks = take_marks(exec->program);
    op->mark = mark_new();
    mark_unref(exec->last);
    exec->last = mark_ref(op->mark);
    if (exec->last_stream != stream) {
        if (exec->last_stream != NULL) {
            stream_unref(exec->last_stream);
        }
        exec->last_stream = stream;
        atomic_fetch_add(&stream->refs, 1);
    }
    return stream_put(stream, op);
}

static CUresult do_cuGraphLaunch(CUgraphExec exec, CUstream handle, bool per_thread)
{
    CUstream stream;
    bool capturing;
    sim_lock();
    CUresult result = handle_is(exec, KIND_EXEC) ? stream_get(handle, per_thread, &stream)
                                                 : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        result = capture_state(stream, &capturing);
    }
    if (result == CUDA_SUCCESS && capturing) {
        capture_spoil(stream->capture); /* as a real driver does: no child graph by this way */
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (result == CUDA_SUCCESS) {
        result = launch(exec, stream);
    }
    sim_unlock();
    return result;
}
WITH_VARIANT(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), exec, stream)

static CUresult do_cuGraphUpload(CUgraphExec exec, CUstream handle, bool per_thread)
{
    CUstream stream;
    bool capturing;
    sim_lock();
    CUresult result = handle_is(exec, KIND_EXEC) ? stream_get(handle, per_thread, &stream)
                                                 : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        result = capture_state(stream, &capturing);
        if (result == CUDA_SUCCESS && capturing) {
            capture_spoil(stream->capture);
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    }
    sim_unlock();
    return result;
}
WITH_VARIANT(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), exec, stream)

/* ---- updating ---- */

static CUgraphExecUpdateResultInfo compare(CUgraph old, CUgraph new);

static CUgraphExecUpdateResultInfo verdict(CUgraphExecUpdateResult result, CUgraphNode node,
                                           CUgraphNode from)
{
    return (CUgraphExecUpdateResultInfo){
        .result = result, .errorNode = node, .errorFromNode = from};
}

/* The same dependencies, as positions; their order doesn't matter. */
static CUgraphNode missing_dependency(CUgraphNode old, CUgraphNode new)
{
    for (size_t i = 0; i < new->ndeps; i++) {
        size_t k = 0;
        while (k < old->ndeps && (old->deps[k]->index != new->deps[i]->index ||
                                  old->edges[k].type != new->edges[i].type ||
                                  old->edges[k].from_port != new->edges[i].from_port)) {
            k++;
        }
        if (k == old->ndeps) {
            return new->deps[i];
        }
    }
    return NULL;
}

static CUgraphExecUpdateResultInfo compare_node(CUgraphNode old, CUgraphNode new)
{
    if (old->type != new->type) {
        return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, new, NULL);
    }
    CUgraphNode missing = missing_dependency(old, new);
    if (missing != NULL || old->ndeps != new->ndeps) {
        return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, new, missing);
    }
    if (work_is_kernel(old->work)) {
        /* Another function is allowed (since driver 11.2), another context not. */
        CUfunction a = old->work->kind == WORK_KERNEL ? old->work->u.kernel.function
                                                      : old->work->u.host_kernel.function;
        CUfunction b = new->work->kind == WORK_KERNEL ? new->work->u.kernel.function
                                                      : new->work->u.host_kernel.function;
        if (a != b && old->work->kind == WORK_KERNEL &&
            new->work->kind == WORK_KERNEL &&function_context(a) != function_context(b)) {
            return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, new, NULL);
        }
        if (a != b && sim_env()->driver < 11020) {
            return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, new, NULL);
        }
        if (work_is_programmatic(old->work) != work_is_programmatic(new->work)) {
            return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, new, NULL);
        }
    }
    if (old->child != NULL) {
        return compare(old->child, new->child);
    }
    if (old->condition != new->condition || old->nbodies != new->nbodies) {
        return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, new, NULL);
    }
    return verdict(CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL, NULL);
}

static CUgraphExecUpdateResultInfo compare(CUgraph old, CUgraph new)
{
    CUgraphExecUpdateResultInfo info = verdict(CU_GRAPH_EXEC_UPDATE_SUCCESS, NULL, NULL);
    for (size_t i = 0; i < old->n && i < new->n &&info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS;
         i++) {
        info = compare_node(old->nodes[i], new->nodes[i]);
    }
    if (info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS && old->n != new->n) {
        return verdict(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                       new->n > old->n ? new->nodes[old->n] : NULL, NULL);
    }
    return info;
}

static void take_over(CUgraph old, CUgraph new)
{
    for (size_t i = 0; i < old->n; i++) {
        CUgraphNode to = old->nodes[i], from = new->nodes[i];
        struct work *work = from->work != NULL ? work_ref(from->work) : NULL;
        if (to->work != NULL) {
            work_unref(to->work);
        }
        to->work = work;
        if (to->child != NULL) {
            take_over(to->child, from->child);
        }
    }
    /* What the new graph keeps alive, its executable copy keeps alive as well. */
    for (size_t i = 0; i < new->nobjects; i++) {
        atomic_fetch_add(&new->objects[i]->refs, 1);
        old->objects = sim_grow(old->objects, old->nobjects + 1, sizeof *old->objects);
        old->objects[old->nobjects++] = new->objects[i];
    }
}

static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    if (info == NULL || !handle_is(exec, KIND_EXEC) || !handle_is(graph, KIND_GRAPH) ||
        graph->capture != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *info = compare(exec->graph, graph);
    if (info->result != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
        return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
    }
    take_over(exec->graph, graph);
    exec_changed(exec);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    ENTER(cuGraphExecUpdate_v2);
    sim_lock();
    CUresult result = update(exec, graph, info);
    sim_unlock();
    return result;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                           CUgraphExecUpdateResult *out)
{
    CUgraphExecUpdateResultInfo info = {0};
    ENTER(cuGraphExecUpdate);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = update(exec, graph, &info);
    sim_unlock();
    *out = info.result;
    if (node != NULL) {
        *node = info.errorNode;
    }
    return result;
}
