/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups. Depth and tasks belong to the thread. At the outermost end: first the jobs (inits,
 * destroys), side by side when there are several, then the launches, one for each communicator. A
 * group of non-blocking communicators does all that on a thread of its own and answers
 * ncclInProgress.
 */
#include "test/fake/nccl_fake.h"

#include <stdlib.h>
#include <string.h>

struct job {
    struct job *next;
    ncclComm_t comm;
    fake_job_fn fn;
    void *arg;
    bool destroys;
    pthread_t thread;
    ncclResult_t result;
};
struct comm_tasks {
    struct comm_tasks *next;
    ncclComm_t comm;
    struct fake_task *first, **last;
    struct fake_graph_id graph;
    CUstream streams[16];
    int nstreams, ntasks;
};
struct work {
    struct job *jobs, **last_job;
    struct comm_tasks *comms;
    ncclSimInfo_t *sim;
    CUcontext ctx;
    ncclComm_t *members; /* non-blocking: whose state to set at the end */
    int nmembers;
};

static __thread int depth;
static __thread ncclResult_t error;
static __thread int blocking = -1; /* of the first communicator in the group */
static __thread struct work now;

ncclResult_t fake_group_start(void)
{
    depth++;
    return ncclSuccess;
}

int fake_group_depth(void)
{
    return depth;
}

ncclResult_t fake_group_error(ncclResult_t res)
{
    if (depth > 0 && res != ncclSuccess && res != ncclInProgress)
        error = res;
    return res;
}

static ncclResult_t join_mode(ncclComm_t comm, bool destroys)
{
    int mine = comm->config.blocking;
    if (destroys)
        blocking = 1;
    else if (blocking == -1)
        blocking = mine;
    else if (blocking != mine) {
        WARN("Blocking and nonblocking communicators are not allowed in the same group.");
        return ncclInvalidArgument;
    }
    return ncclSuccess;
}

ncclResult_t fake_group_job(ncclComm_t comm, fake_job_fn fn, void *arg, bool destroys)
{
    if (depth == 0) {
        ncclResult_t res = fn(comm, arg);
        free(arg);
        return res;
    }
    ncclResult_t res = join_mode(comm, destroys);
    if (res != ncclSuccess) {
        free(arg);
        return res;
    }
    struct job *j = calloc(1, sizeof(*j));
    *j = (struct job){.comm = comm, .fn = fn, .arg = arg, .destroys = destroys};
    if (!now.jobs)
        now.last_job = &now.jobs;
    *now.last_job = j;
    now.last_job = &j->next;
    return ncclSuccess;
}

/* ---- tasks ---- */

static struct comm_tasks *tasks_of(ncclComm_t comm)
{
    struct comm_tasks **p = &now.comms;
    while (*p && (*p)->comm != comm)
        p = &(*p)->next;
    if (!*p) {
        *p = calloc(1, sizeof(**p));
        (*p)->comm = comm;
        (*p)->last = &(*p)->first;
    }
    return *p;
}

ncclResult_t fake_group_add(struct fake_task *task)
{
    ncclComm_t comm = task->comm;
    struct fake_graph_id graph;
    ncclResult_t res = fake_capture_query(task->stream, &graph);
    struct comm_tasks *t = res == ncclSuccess ? tasks_of(comm) : NULL;
    if (t && t->ntasks &&
        (!t->graph.graph != !graph.graph || (graph.graph && t->graph.id != graph.id))) {
        WARN("Streams given to a communicator within a NCCL group must either be all uncaptured or "
             "all captured by the same graph.");
        res = ncclInvalidUsage;
    }
    if (res == ncclSuccess)
        res = join_mode(comm, false);
    if (res != ncclSuccess) {
        free(task);
        return res;
    }
    t->graph = graph;
    task->captured = graph.graph != NULL;
    int s = 0;
    while (s < t->nstreams && t->streams[s] != task->stream)
        s++;
    if (s == t->nstreams && s < 16) { /* the newest stream is the one that gets the launch */
        memmove(t->streams + 1, t->streams, (size_t)t->nstreams * sizeof(CUstream));
        t->streams[0] = task->stream;
        t->nstreams++;
    }
    if (comm->nranks > 1) {
        fake_profiler_call_start(task, depth);
        fake_profiler_call_stop(task);
    }
    *t->last = task;
    t->last = &task->next;
    t->ntasks++;
    return ncclSuccess;
}

static size_t traffic(const struct fake_task *t)
{
    return t->count * fake_type_size(t->type) * (t->func == ncclFuncAllReduce ? 2 : 1);
}

/* Bytes as the tuner sees them: totals for all-gather and reduce-scatter. */
static size_t tuner_bytes(const struct fake_task *t)
{
    bool total = t->func == ncclFuncAllGather || t->func == ncclFuncReduceScatter;
    return t->count * fake_type_size(t->type) * (total ? (size_t)t->comm->nranks : 1);
}

static bool one_bin(const struct fake_task *a, const struct fake_task *b)
{
    return a->func == b->func && a->type == b->type && a->op.op == b->op.op &&
           a->op.premul == b->op.premul;
}

/* Collectives by descending size, as NCCL's sorter gives them; messages behind. */
static struct fake_task *sorted(struct fake_task *list)
{
    struct fake_task *colls = NULL, *p2p = NULL, **end = &p2p;
    for (struct fake_task *t = list, *next; t; t = next) {
        next = t->next;
        t->next = NULL;
        if (t->func > ncclFuncAllReduce) {
            *end = t;
            end = &t->next;
            continue;
        }
        struct fake_task **at = &colls;
        while (*at && traffic(*at) >= traffic(t))
            at = &(*at)->next;
        t->next = *at;
        *at = t;
    }
    struct fake_task **tail = &colls;
    while (*tail)
        tail = &(*tail)->next;
    *tail = p2p;
    return colls;
}

/* The line that NCCL_DEBUG_SUBSYS=TUNING shows, in this version's words. */
static void say(const struct fake_task *t, size_t bytes)
{
    const struct fake_choice *c = &t->choice;
    if (t->comm->rank != 0 || FAKE_VER < 22203)
        return;
    if (FAKE_VER < 22403)
        INFO(NCCL_TUNING, "%s%s%ld Bytes -> Algo %d proto %d time %f",
             FAKE_VER >= 22304 ? fake_func_name(t->func) : "", FAKE_VER >= 22304 ? ": " : "",
             (long)bytes, c->algo, c->proto, (double)c->predicted_us);
    else
        INFO(NCCL_TUNING, "%s: %ld Bytes -> Algo %s proto %s channel{Lo..Hi}={0..%d}",
             fake_func_name(t->func), (long)(t->count * fake_type_size(t->type)),
             fake_algo_name(c->algo), fake_proto_name(c->proto), c->nchannels - 1);
}

/*
 * NCCL asks for one algorithm for all tasks of a (function, operation, type) whose sizes are within
 * four times of the smallest, with the sum of their bytes.
 */
static ncclResult_t choose(struct comm_tasks *c, ncclSimInfo_t *sim)
{
    int ncolls = 0;
    for (struct fake_task *t = c->first; t; t = t->next)
        ncolls += t->func <= ncclFuncAllReduce;
    int per_channel = c->comm->machine.nchannels
                          ? (ncolls + c->comm->machine.nchannels - 1) / c->comm->machine.nchannels
                          : 1;
    for (;;) {
        struct fake_task *t = NULL; /* the smallest one left is the last: the list descends */
        for (struct fake_task *u = c->first; u; u = u->next)
            if (u->func <= ncclFuncAllReduce && !u->choice.nchannels)
                t = u;
        if (!t)
            break;
        size_t bytes = 0, limit = 4 * traffic(t);
        for (struct fake_task *u = c->first; u; u = u->next)
            if (u == t || (!u->choice.nchannels && one_bin(t, u) && traffic(u) < limit))
                bytes += tuner_bytes(u);
        struct fake_choice choice;
        NCCLCHECK(fake_choose(c->comm, t->func, t->type, bytes, per_channel, c->graph.graph != NULL,
                              &choice));
        if (sim && sim->estimatedTime < choice.predicted_us)
            sim->estimatedTime = choice.predicted_us;
        for (struct fake_task *u = c->first; u; u = u->next)
            if (u == t || (!u->choice.nchannels && one_bin(t, u) && traffic(u) < limit))
                u->choice = choice;
        say(t, bytes);
    }
    return ncclSuccess;
}

static ncclResult_t launch(struct comm_tasks *c, ncclSimInfo_t *sim)
{
    ncclComm_t comm = c->comm;
    fake_ask_stage(STAGE_LAUNCH);
    c->first = sorted(c->first);
    if (comm->nranks > 1)
        NCCLCHECK(choose(c, sim));
    if (sim)
        return ncclSuccess;
    CUstream main_stream = c->streams[0];
    for (int i = 1; i < c->nstreams; i++)
        NCCLCHECK(fake_stream_wait(comm, main_stream, c->streams[i]));
    if (comm->nranks > 1)
        NCCLCHECK(fake_capture_before(comm, &c->graph, main_stream));
    fake_profiler_launch(comm, c->first, main_stream, true, c->graph.graph != NULL);
    ncclResult_t res = fake_exec_launch(comm, main_stream, c->first, c->graph.graph != NULL);
    if (comm->nranks > 1)
        fake_profiler_launch(comm, c->first, main_stream, false, c->graph.graph != NULL);
    NCCLCHECK(res);
    if (comm->nranks > 1)
        NCCLCHECK(fake_capture_after(comm, &c->graph, main_stream));
    for (int i = 1; i < c->nstreams; i++)
        NCCLCHECK(fake_stream_wait(comm, c->streams[i], main_stream));
    comm->op_count++;
    return ncclSuccess;
}

/* ---- the end of a group ---- */

static void *job_main(void *arg)
{
    struct job *j = arg;
    j->result = j->fn(j->comm, j->arg);
    return NULL;
}

static ncclResult_t run_jobs(struct work *w)
{
    ncclResult_t res = ncclSuccess;
    if (w->jobs && !w->jobs->next) {
        job_main(w->jobs);
        return w->jobs->result;
    }
    for (struct job *j = w->jobs; j; j = j->next)
        if (pthread_create(&j->thread, NULL, job_main, j))
            job_main(j), j->thread = 0;
    for (struct job *j = w->jobs; j; j = j->next) {
        if (j->thread)
            pthread_join(j->thread, NULL);
        if (j->result != ncclSuccess && res == ncclSuccess)
            res = j->result;
    }
    return res;
}

static void drop(struct work *w)
{
    for (struct job *j = w->jobs, *next; j; j = next) {
        next = j->next;
        free(j->arg);
        free(j);
    }
    for (struct comm_tasks *c = w->comms, *next; c; c = next) {
        next = c->next;
        for (struct fake_task *t = c->first, *after; t; t = after) {
            after = t->next;
            free(t);
        }
        free(c);
    }
    free(w->members);
    memset(w, 0, sizeof(*w));
}

static ncclResult_t run(struct work *w)
{
    ncclResult_t res = run_jobs(w);
    bool capturing = false, not_capturing = false;
    for (struct comm_tasks *c = w->comms; c; c = c->next)
        *(c->graph.graph ? &capturing : &not_capturing) = true;
    if (res == ncclSuccess && capturing && not_capturing) {
        WARN("Either none or all communicators in a ncclGroup() can be CUDA graph captured.");
        res = ncclInvalidUsage;
    }
    for (struct comm_tasks *c = w->comms; c && res == ncclSuccess; c = c->next) {
        fake_cu.cuCtxSetCurrent(c->comm->ctx);
        res = launch(c, w->sim);
    }
    return res;
}

static void *background(void *arg)
{
    struct work *w = arg;
    fake_cu.cuCtxSetCurrent(w->ctx);
    ncclResult_t res = run(w);
    for (int i = 0; i < w->nmembers; i++) {
        ncclComm_t c = w->members[i];
        /* The state is the last touch: whoever sees it may destroy the communicator. */
        atomic_store(&c->job_done, 1);
        if (atomic_load(&c->async) == ncclInProgress || res != ncclSuccess)
            fake_comm_set_async(c, res);
    }
    drop(w);
    free(w);
    return NULL;
}

static void add_member(struct work *w, ncclComm_t comm)
{
    for (int i = 0; i < w->nmembers; i++)
        if (w->members[i] == comm)
            return;
    w->members = realloc(w->members, (size_t)(w->nmembers + 1) * sizeof(ncclComm_t));
    w->members[w->nmembers++] = comm;
}

static ncclResult_t run_in_background(struct work *w)
{
    struct work *copy = malloc(sizeof(*copy));
    pthread_t thread;
    for (struct job *j = w->jobs; j; j = j->next)
        add_member(w, j->comm);
    for (struct comm_tasks *c = w->comms; c; c = c->next)
        add_member(w, c->comm);
    ncclComm_t owner = w->members[0];
    for (int i = 0; i < w->nmembers; i++) {
        fake_group_join_thread(w->members[i]);
        fake_comm_set_async(w->members[i], ncclInProgress);
        atomic_store(&w->members[i]->job_done, 0);
    }
    fake_cu.cuCtxGetCurrent(&w->ctx);
    *copy = *w;
    copy->sim = NULL;
    memset(w, 0, sizeof(*w));
    if (pthread_create(&thread, NULL, background, copy))
        return ncclSystemError;
    /* One communicator holds the thread; the others can tell from their state that it is done. */
    owner->job_thread = thread;
    owner->job_running = true;
    return ncclInProgress;
}

ncclResult_t fake_group_join_thread(ncclComm_t comm)
{
    if (atomic_exchange(&comm->job_running, false))
        pthread_join(comm->job_thread, NULL);
    return ncclSuccess;
}

static ncclResult_t end_outermost(ncclSimInfo_t *sim)
{
    ncclResult_t res = error;
    ncclSimInfo_t own = {.estimatedTime = -1.0f};
    if (res == ncclSuccess && sim) {
        if (sim->magic != NCCL_SIM_INFO_MAGIC) {
            WARN("ncclSimInfo_t argument not initialized via NCCL_SIM_INFO_INITIALIZER");
            res = ncclInvalidArgument;
        }
        now.sim = &own;
    }
    if (res != ncclSuccess || (!now.jobs && !now.comms)) {
        for (struct comm_tasks *c = now.comms; c; c = c->next)
            if (!c->comm->config.blocking)
                fake_comm_set_async(c->comm, res);
    } else if (blocking == 0 && !sim) {
        return run_in_background(&now);
    } else {
        CUcontext ctx = NULL;
        fake_cu.cuCtxGetCurrent(&ctx);
        res = run(&now);
        fake_cu.cuCtxSetCurrent(ctx);
        if (sim)
            sim->estimatedTime = own.estimatedTime;
    }
    drop(&now);
    return res;
}

ncclResult_t fake_group_end(ncclSimInfo_t *sim)
{
    if (depth == 0) {
        WARN("ncclGroupEnd: not in a group call.");
        return ncclInvalidUsage;
    }
    fake_profiler_group_end(depth - 1);
    if (--depth > 0)
        return ncclSuccess;
    ncclResult_t res = end_outermost(sim);
    error = ncclSuccess;
    blocking = -1;
    fake_profiler_group_done();
    return res;
}

FAKE_API(ncclResult_t, ncclGroupStart, void)
{
    API_ENTER(ncclGroupStart);
    return fake_group_start();
}

FAKE_API(ncclResult_t, ncclGroupEnd, void)
{
    API_ENTER(ncclGroupEnd);
    return fake_group_end(NULL);
}

#if FAKE_VER >= 22203
FAKE_API(ncclResult_t, ncclGroupSimulateEnd, ncclSimInfo_t *sim)
{
    API_ENTER(ncclGroupSimulateEnd);
    return fake_group_end(sim);
}
#endif
