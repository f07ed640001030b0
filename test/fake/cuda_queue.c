/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of a stream and the thread that works it off; marks, and the rules between the legacy
 * stream and blocking streams.
 *
 * Workers are detached and hold nothing that exit() would wait for.
 */
#include "test/fake/cuda_sim.h"
#include "test/fake/cuda_graph.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- marks ---- */

struct mark *mark_new(void)
{
    struct mark *mark = sim_alloc(sizeof *mark);
    atomic_init(&mark->refs, 1);
    return mark;
}

struct mark *mark_ref(struct mark *mark)
{
    atomic_fetch_add_explicit(&mark->refs, 1, memory_order_relaxed);
    return mark;
}

void mark_unref(struct mark *mark)
{
    if (mark != NULL && atomic_fetch_sub_explicit(&mark->refs, 1, memory_order_acq_rel) == 1) {
        free(mark);
    }
}

void mark_finish(struct mark *mark, uint64_t time_ns)
{
    mark->time_ns = time_ns;
    /* 2: somebody sleeps. The exchange publishes time_ns. */
    if (atomic_exchange_explicit(&mark->done, 1, memory_order_acq_rel) == 2) {
        syscall(SYS_futex, &mark->done, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

bool mark_is_done(struct mark *mark, uint64_t *time_ns)
{
    if (atomic_load_explicit(&mark->done, memory_order_acquire) != 1) {
        return false;
    }
    *time_ns = mark->time_ns;
    return true;
}

uint64_t mark_wait(struct mark *mark)
{
    int seen;
    while ((seen = atomic_load_explicit(&mark->done, memory_order_acquire)) != 1) {
        if (seen == 0 && !atomic_compare_exchange_strong(&mark->done, &seen, 2)) {
            continue;
        }
        syscall(SYS_futex, &mark->done, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    }
    return mark->time_ns;
}

/* ---- operations ---- */

struct op *op_new(enum op_kind kind)
{
    struct op *op = sim_alloc(sizeof *op);
    op->kind = kind;
    return op;
}

void op_free(struct op *op)
{
    if (op->marks != NULL) {
        for (size_t i = 0; i < op->program->nevents; i++) {
            mark_unref(op->marks[i]);
        }
        free(op->marks);
    }
    if (op->work != NULL) {
        work_unref(op->work);
    }
    if (op->program != NULL) {
        program_unref(op->program);
    }
    if (op->exec != NULL) {
        exec_unref(op->exec);
    }
    mark_unref(op->mark);
    free(op);
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t stream_run_op(CUstream stream, struct op *op, uint64_t now_ns)
{
    uint64_t start = later_of(now_ns, op->not_before_ns);
    switch (op->kind) {
    case OP_WORK: {
        uint32_t gap = work_is_programmatic(op->work) ? COST_GAP_PDL_NS : COST_GAP_NS;
        start = later_of(start + gap, op->host_ns + COST_LAUNCH_NS);
        return work_run(op->work, stream->ctx, start, NULL);
    }
    case OP_GRAPH: {
        start = later_of(start + COST_GAP_NS, op->host_ns + COST_GRAPH_LAUNCH_NS);
        program_reset(op->program);
        uint64_t end = program_run(op->program, stream->ctx, start, op->marks);
        mark_finish(op->mark, end);
        return end;
    }
    case OP_MARK:
        start = later_of(start, op->host_ns) + COST_RECORD_NS;
        mark_finish(op->mark, start);
        return start;
    case OP_WAIT:
        return later_of(start, mark_wait(op->mark));
    }
    return start;
}

static void *work_off(void *arg)
{
    CUstream stream = arg;
    pthread_mutex_lock(&stream->mutex);
    for (;;) {
        while (stream->first == NULL && !stream->closing) {
            pthread_cond_wait(&stream->more, &stream->mutex);
        }
        struct op *op = stream->first;
        if (op == NULL) {
            break;
        }
        stream->first = op->next;
        if (op->next == NULL) {
            stream->last = NULL;
        }
        uint64_t now_ns = stream->now_ns;
        stream->runs_kernel = op->kind == OP_WORK || op->kind == OP_GRAPH;
        pthread_mutex_unlock(&stream->mutex);

        now_ns = stream_run_op(stream, op, now_ns);

        pthread_mutex_lock(&stream->mutex);
        stream->now_ns = now_ns;
        stream->finished++;
        stream->runs_kernel = false;
        if (stream->waiters > 0) {
            pthread_cond_broadcast(&stream->less);
        }
        pthread_mutex_unlock(&stream->mutex);
        /* Behind the books: a release function may take its time. */
        op_free(op);
        pthread_mutex_lock(&stream->mutex);
    }
    pthread_mutex_unlock(&stream->mutex);
    stream_unref(stream);
    return NULL;
}

static CUresult start_worker(CUstream stream)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, old;
    /* Signals belong to the program's own threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&stream->refs, 1);
    int failed = pthread_create(&thread, &attr, work_off, stream);
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) {
        atomic_fetch_sub(&stream->refs, 1);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->has_worker = true;
    return CUDA_SUCCESS;
}

/* Append; starts the worker with the first operation. Frees `op` when it can't. */
static CUresult append(CUstream stream, struct op *op)
{
    CUresult result = CUDA_SUCCESS;
    op->host_ns = sim_now();
    pthread_mutex_lock(&stream->mutex);
    if (!stream->has_worker) {
        result = start_worker(stream);
    }
    if (result == CUDA_SUCCESS) {
        if (stream->last == NULL) {
            stream->first = op;
            pthread_cond_signal(&stream->more);
        } else {
            stream->last->next = op;
        }
        stream->last = op;
        stream->put++;
    }
    pthread_mutex_unlock(&stream->mutex);
    if (result != CUDA_SUCCESS) {
        if (op->kind == OP_MARK || op->kind == OP_GRAPH) {
            mark_finish(op->mark, op->host_ns); /* nobody may wait for it for ever */
        }
        op_free(op);
    }
    return result;
}

CUresult stream_mark(CUstream stream, struct mark **out)
{
    struct mark *mark = mark_new();
    pthread_mutex_lock(&stream->mutex);
    bool idle = stream->put == stream->finished;
    uint64_t now_ns = stream->now_ns;
    pthread_mutex_unlock(&stream->mutex);
    *out = mark;
    if (idle) {
        mark_finish(mark, now_ns);
        return CUDA_SUCCESS;
    }
    struct op *op = op_new(OP_MARK);
    op->mark = mark_ref(mark);
    CUresult result = append(stream, op);
    if (result != CUDA_SUCCESS) {
        mark_unref(mark);
    }
    return result;
}

CUresult stream_put_wait(CUstream stream, struct mark *mark)
{
    uint64_t time_ns;
    struct op *op = op_new(OP_WAIT);
    op->mark = mark;
    if (mark_is_done(mark, &time_ns)) {
        /* Only the time counts, and only if the stream is behind it. */
        pthread_mutex_lock(&stream->mutex);
        bool idle = stream->put == stream->finished;
        if (idle) {
            stream->now_ns = later_of(stream->now_ns, time_ns);
        }
        pthread_mutex_unlock(&stream->mutex);
        if (idle) {
            op_free(op);
            return CUDA_SUCCESS;
        }
    }
    return append(stream, op);
}

/* Default-stream rules: the legacy stream and blocking streams wait for each other. */
static CUresult wait_for_other_kind(CUstream stream)
{
    struct mark *mark;
    CUstream legacy = stream->ctx->legacy;
    if (!stream->legacy) {
        if ((stream->flags & CU_STREAM_NON_BLOCKING) != 0 || legacy == NULL ||
            stream->legacy_seen == legacy->put) {
            return CUDA_SUCCESS;
        }
        TRY(stream_mark(legacy, &mark));
        stream->legacy_seen = legacy->put;
        return stream_put_wait(stream, mark);
    }
    for (CUstream other = stream->ctx->streams; other != NULL; other = other->next) {
        if (other != stream && (other->flags & CU_STREAM_NON_BLOCKING) == 0 && other->has_worker) {
            TRY(stream_mark(other, &mark));
            TRY(stream_put_wait(stream, mark));
        }
    }
    return CUDA_SUCCESS;
}

CUresult stream_put(CUstream stream, struct op *op)
{
    CUresult result = wait_for_other_kind(stream);
    if (result != CUDA_SUCCESS) {
        op_free(op);
        return result;
    }
    return append(stream, op);
}

CUresult stream_put_work(CUstream stream, struct work *work)
{
    struct op *op = op_new(OP_WORK);
    op->work = work;
    return stream_put(stream, op);
}

bool stream_is_idle(CUstream stream)
{
    pthread_mutex_lock(&stream->mutex);
    bool idle = stream->put == stream->finished && sim_is_past(stream->now_ns);
    pthread_mutex_unlock(&stream->mutex);
    return idle;
}

bool stream_runs_kernel(CUstream stream, uint64_t *number)
{
    pthread_mutex_lock(&stream->mutex);
    bool runs = stream->runs_kernel;
    *number = stream->finished + 1;
    pthread_mutex_unlock(&stream->mutex);
    return runs;
}

void stream_wait_until(CUstream stream, uint64_t number)
{
    pthread_mutex_lock(&stream->mutex);
    stream->waiters++;
    while (stream->finished < number) {
        pthread_cond_wait(&stream->less, &stream->mutex);
    }
    stream->waiters--;
    pthread_mutex_unlock(&stream->mutex);
}

uint64_t stream_wait(CUstream stream)
{
    pthread_mutex_lock(&stream->mutex);
    uint64_t until = stream->put;
    stream->waiters++;
    while (stream->finished < until) {
        pthread_cond_wait(&stream->less, &stream->mutex);
    }
    stream->waiters--;
    uint64_t now_ns = stream->now_ns;
    pthread_mutex_unlock(&stream->mutex);
    return now_ns;
}

/* ---- life ---- */

CUstream stream_new(CUcontext ctx, unsigned flags, int priority)
{
    static uint64_t ids;
    CUstream stream = sim_alloc(sizeof *stream);
    stream->ctx = ctx;
    atomic_init(&stream->refs, 1);
    stream->id = ++ids;
    stream->flags = flags;
    stream->priority = priority;
    stream->alive = true;
    pthread_mutex_init(&stream->mutex, NULL);
    pthread_cond_init(&stream->more, NULL);
    pthread_cond_init(&stream->less, NULL);
    stream->next = ctx->streams;
    ctx->streams = stream;
    return stream;
}

void stream_unref(CUstream stream)
{
    if (atomic_fetch_sub(&stream->refs, 1) == 1) {
        pthread_mutex_destroy(&stream->mutex);
        pthread_cond_destroy(&stream->more);
        pthread_cond_destroy(&stream->less);
        free(stream->deps);
        free(stream->edges);
        free(stream);
    }
}

void stream_destroy(CUstream stream)
{
    CUstream *link = &stream->ctx->streams;
    capture_abandon(stream);
    while (*link != NULL && *link != stream) {
        link = &(*link)->next;
    }
    if (*link == stream) {
        *link = stream->next;
    }
    handle_drop(stream);
    stream->alive = false;
    pthread_mutex_lock(&stream->mutex);
    stream->closing = true;
    pthread_cond_signal(&stream->more);
    pthread_mutex_unlock(&stream->mutex);
    stream_unref(stream);
}
