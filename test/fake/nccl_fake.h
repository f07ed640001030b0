/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the simulated NCCL share. One section for each file, in the order in which they
 * build on each other. No symbol declared here is exported.
 *
 * Besides NCCL's own variables (nccl_vars.h) it obeys these, read by plain getenv:
 *
 *   NCCLSHIM_FAKE_TIMEOUT=S      how long a rank waits for the others (default 60): then an init fails
 *                                with ncclSystemError, a collective with an asynchronous
 *                                ncclRemoteError, and destroy no longer waits for a living graph
 *   NCCLSHIM_FAKE_SEED=N         another draw of the noise on durations
 *   NCCLSHIM_FAKE_STRAGGLER=RANK:NS[:EVERY]
 *                                that rank arrives NS nanoseconds late, at every EVERY-th collective
 *   NCCLSHIM_FAKE_SKIP_DATA=N    from a communicator's N-th collective on (1: from the first) ranks
 *                                meet and times pass, but no byte is moved
 *   NCCLSHIM_FAKE_WRONG=NAME=VALUE
 *                                wrong results while NAME has VALUE: for NCCL_PROTO and NCCL_ALGO the
 *                                call's own choice counts as well as the variable
 *   NCCLSHIM_FAKE_HANG=NAME=VALUE
 *                                the same, but the collective hangs until it is aborted (ten minutes)
 *   NCCLSHIM_FAKE_REUSE=1        a new communicator gets the address of the one that ended last
 *   NCCLSHIM_FAKE_NCCL_COUNTS=FILE
 *                                at exit, append a line "name count" for each public function entered
 */
#ifndef FAKE_NCCL_H
#define FAKE_NCCL_H

#include "test/fake/fakecuda.h"
#include "test/fake/nccl_decl.h"
#include "test/fake/nccl_vars.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- nccl_debug.c: NCCL_DEBUG and the last error ---- */
void fake_log(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
              const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define WARN(...) fake_log(NCCL_LOG_WARN, NCCL_ALL, __func__, __LINE__, __VA_ARGS__)
#define INFO(flags, ...)                                                       \
    do {                                                                       \
        if (fake_log_wanted(NCCL_LOG_INFO, (flags)))                           \
            fake_log(NCCL_LOG_INFO, (flags), __func__, __LINE__, __VA_ARGS__); \
    } while (0)
bool fake_log_wanted(ncclDebugLogLevel level, unsigned long flags);
void fake_show_version(int rank);
const char *fake_last_error(void);
void fake_debug_reset(void);
void fake_debug_after_fork(void);
/* A fault of the program under test that real NCCL would answer with a hang or wrong data: on
 * stderr. */
void fake_complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- nccl_env.c: where values come from ---- */
#define FAKE_VAR_ENUM(name, kind, def, since, until, stage) VAR_##name,
enum fake_var { FAKE_VARS(FAKE_VAR_ENUM) VAR_COUNT };
enum fake_stage {
    STAGE_RAW,
    STAGE_DEBUG,
    STAGE_NVTX,
    STAGE_CUDA,
    STAGE_UNIQUE_ID,
    STAGE_INIT,
    STAGE_PLUGIN,
    STAGE_IB,
    STAGE_GIN,
    STAGE_LAUNCH,
    STAGE_SYM,
    STAGE_WINDOW,
    STAGE_PARAM_API
};
void fake_env_init(void);                   /* conf files, then the env plugin; once */
bool fake_env_ready(void);                  /* is the env plugin up? */
const char *fake_getenv(const char *name);  /* NCCL's own question, answered by the plugin */
int64_t fake_param(enum fake_var var);      /* an integer variable, cached for the process */
bool fake_param_is_set(enum fake_var var);  /* the same question; false: the default holds */
const char *fake_string(enum fake_var var); /* a string variable; NULL when this version lacks it */
void fake_ask_stage(enum fake_stage stage); /* ask for all that NCCL first reads at this point */
void fake_env_after_fork(void);
/* NCCLSHIM_FAKE_*: knobs of the simulator, never through the plugin. */
int64_t fake_knob(const char *name, int64_t otherwise);

/* ---- nccl_plugin.c: NCCL's way to open a plugin ---- */
enum fake_plugin { PLUGIN_ENV, PLUGIN_TUNER, PLUGIN_PROFILER };
void *fake_plugin_open(enum fake_plugin type, const char *value);
void fake_plugin_close(enum fake_plugin type, void *lib);
const char *fake_plugin_path(enum fake_plugin type);
void *fake_plugin_symbol(void *lib, const char *name);

/* ---- nccl_driver.c: the driver, found when first needed ---- */
struct fake_driver {
#define FAKE_DRIVER(D)                                                                           \
    D(cuInit, "cuInit", CUresult, (unsigned))                                                    \
    D(cuDriverGetVersion, "cuDriverGetVersion", CUresult, (int *))                               \
    D(cuDeviceGetCount, "cuDeviceGetCount", CUresult, (int *))                                   \
    D(cuDeviceGet, "cuDeviceGet", CUresult, (CUdevice *, int))                                   \
    D(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", CUresult, (char *, int, CUdevice))             \
    D(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", CUresult, (CUcontext *, CUdevice))   \
    D(cuCtxGetCurrent, "cuCtxGetCurrent", CUresult, (CUcontext *))                               \
    D(cuCtxSetCurrent, "cuCtxSetCurrent", CUresult, (CUcontext))                                 \
    D(cuCtxGetDevice, "cuCtxGetDevice", CUresult, (CUdevice *))                                  \
    D(cuMemAlloc, "cuMemAlloc_v2", CUresult, (CUdeviceptr *, size_t))                            \
    D(cuMemFree, "cuMemFree_v2", CUresult, (CUdeviceptr))                                        \
    D(cuPointerGetAttribute, "cuPointerGetAttribute", CUresult,                                  \
      (void *, CUpointer_attribute, CUdeviceptr))                                                \
    D(cuStreamCreate, "cuStreamCreate", CUresult, (CUstream *, unsigned))                        \
    D(cuStreamDestroy, "cuStreamDestroy_v2", CUresult, (CUstream))                               \
    D(cuStreamIsCapturing, "cuStreamIsCapturing", CUresult, (CUstream, CUstreamCaptureStatus *)) \
    D(cuStreamWaitEvent, "cuStreamWaitEvent", CUresult, (CUstream, CUevent, unsigned))           \
    D(cuEventCreate, "cuEventCreate", CUresult, (CUevent *, unsigned))                           \
    D(cuEventDestroy, "cuEventDestroy_v2", CUresult, (CUevent))                                  \
    D(cuEventRecord, "cuEventRecord", CUresult, (CUevent, CUstream))                             \
    D(cuGraphAddEventRecordNode, "cuGraphAddEventRecordNode", CUresult,                          \
      (CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent))                            \
    D(launch, "fakecuda_launch", CUresult,                                                       \
      (CUstream, const char *, fakecuda_kernel_fn, void *, void (*)(void *)))
#define FAKE_DRIVER_MEMBER(member, symbol, ret, args) ret(*member) args;
    FAKE_DRIVER(FAKE_DRIVER_MEMBER)
    /* Forms that differ between driver versions, brought to one shape. */
    CUresult (*capture_info)(CUstream, CUstreamCaptureStatus *, cuuint64_t *, CUgraph *,
                             const CUgraphNode **, size_t *);
    CUresult (*set_capture_deps)(CUstream, CUgraphNode *, size_t);
};
extern struct fake_driver fake_cu;
ncclResult_t fake_driver_need(void); /* ncclUnhandledCudaError without a simulated driver */
ncclResult_t fake_cu_check(CUresult res, const char *what);
ncclResult_t fake_current_device(CUdevice *dev); /* makes a primary context where there is none */
#define CUCHECK(call)                                             \
    do {                                                          \
        ncclResult_t cucheck_res_ = fake_cu_check((call), #call); \
        if (cucheck_res_ != ncclSuccess)                          \
            return cucheck_res_;                                  \
    } while (0)
#define NCCLCHECK(call)                                                        \
    do {                                                                       \
        ncclResult_t ncclcheck_res_ = (call);                                  \
        if (ncclcheck_res_ != ncclSuccess && ncclcheck_res_ != ncclInProgress) \
            return ncclcheck_res_;                                             \
    } while (0)

/* ---- nccl_config.c ---- */
ncclResult_t fake_config_parse(ncclComm_t comm, const ncclConfig_t *user);
ncclResult_t fake_config_copy(ncclComm_t child, const struct ncclComm *parent);

/* ---- nccl_cost.c: the invented machine ---- */
struct fake_machine {
    int nchannels; /* of the communicator, after all limits */
    int max_threads[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS];
    int thread_threshold[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS];
    int64_t buff_bytes[FAKE_NUM_PROTOS];
    bool allowed[FAKE_NUM_FUNCS][FAKE_NUM_ALGOS][FAKE_NUM_PROTOS];
    bool p2p; /* peers reach each other's memory; else through host memory */
    bool net; /* ranks on more than one simulated host */
    bool graph_mixing;
};
struct fake_choice {
    int algo, proto;
    int nchannels, nwarps;
    int max_channels;   /* before small messages use fewer */
    size_t chunk_bytes; /* 0 = the protocol's own */
    float predicted_us;
};
ncclResult_t fake_machine_setup(ncclComm_t comm);
ncclResult_t fake_choose(ncclComm_t comm, ncclFunc_t func, ncclDataType_t type, size_t bytes,
                         int ntasks, bool captured, struct fake_choice *out);
uint64_t fake_duration_ns(const struct ncclComm *comm, ncclFunc_t func, size_t bytes,
                          const struct fake_choice *c, bool captured);
uint64_t fake_noise_ns(uint64_t duration_ns, int nranks, uint64_t seq);
const char *fake_func_name(ncclFunc_t func);
const char *fake_algo_name(int algo);
const char *fake_proto_name(int proto);
const char *fake_type_name(ncclDataType_t type);
extern const char *const fake_algo_words[FAKE_NUM_ALGOS];
extern const char *const fake_proto_words[FAKE_NUM_PROTOS];

/* ---- nccl_list.c: NCCL_ALGO's and NCCL_PROTO's grammar ---- */
ncclResult_t fake_parse_list(const char *text, const char *const *elems, int nelems,
                             int list[FAKE_NUM_FUNCS][8]);

/* ---- nccl_reduce.c ---- */
size_t fake_type_size(ncclDataType_t type);
struct fake_redop {
    ncclRedOp_t op; /* a built-in one; ncclSum with premul for user-made ones */
    bool premul, scalar_in_memory;
    uint64_t scalar; /* the bits, or the address */
    int divide_by;   /* ncclAvg: of this many ranks; else 0 */
};
/* dst[i] = op over src[0..n)[i]; dst may be one of the sources. */
void fake_reduce(void *dst, const void *const *src, int n, size_t count, ncclDataType_t type,
                 const struct fake_redop *op);

/* ---- nccl_shm.c: what the ranks of one communicator share ---- */
struct fake_shm;
struct fake_peer {
    uint64_t host_hash, bus_id;
    int32_t pid, version, cuda_dev, rank, ok;
};
struct fake_head { /* what a rank says about the operation that it has reached */
    uint64_t arrival_ns, count, key, choice;
};
ncclResult_t fake_shm_join(const char id[NCCL_UNIQUE_ID_BYTES], int nranks, int rank,
                           atomic_int *abort_flag, struct fake_shm **out);
void fake_shm_leave(struct fake_shm *shm);
void fake_shm_fail(struct fake_shm *shm); /* this rank's init failed: let the others know */
void fake_shm_wake(struct fake_shm *shm);
/* Host side: everyone gives 64 bytes and gets all. Aborts, times out (ncclRemoteError). */
ncclResult_t fake_shm_allgather(struct fake_shm *shm, const void *mine, size_t size, void *all);
/* Device side: one round of the rendezvous. The pointers are those of the round that `meet` will
 * end. */
struct fake_head *fake_shm_head(struct fake_shm *shm, int rank);
char *fake_shm_stage(struct fake_shm *shm, int rank);
char *fake_shm_result(struct fake_shm *shm);
size_t fake_shm_stage_bytes(const struct fake_shm *shm);
bool fake_shm_meet(struct fake_shm *shm); /* false: aborted or given up */
/* After meet: the same places of the round just ended. */
const struct fake_head *fake_shm_met_head(struct fake_shm *shm, int rank);
const char *fake_shm_met_stage(struct fake_shm *shm, int rank);
const char *fake_shm_met_result(struct fake_shm *shm);

struct fake_msg { /* one send or receive in progress */
    bool is_send;
    int peer;
    char *buff;
    size_t bytes, done;
    uint64_t arrival_ns, peer_arrival_ns;
    uint64_t number; /* which of the pair's messages; 0 = not announced */
    int state;
    bool mismatch;
};
/* Moves all messages until they are done; false as for meet. */
bool fake_shm_messages(struct fake_shm *shm, int rank, struct fake_msg *msgs, int n,
                       bool skip_data);

/* ---- nccl_tuner.c, nccl_profiler.c ---- */
ncclResult_t fake_tuner_init(ncclComm_t comm);
void fake_tuner_fini(ncclComm_t comm);
bool fake_tuner_present(const struct ncclComm *comm);
ncclResult_t fake_tuner_ask(ncclComm_t comm, ncclFunc_t func, size_t bytes, int ntasks,
                            float table[FAKE_NUM_ALGOS][FAKE_NUM_PROTOS], int reg_buff,
                            int *nchannels);
ncclResult_t fake_tuner_chunk(ncclComm_t comm, ncclFunc_t func, size_t bytes, int algo, int proto,
                              int nchannels, size_t *chunk);

struct fake_task;
struct fake_plan;
void fake_profiler_init(ncclComm_t comm);
void fake_profiler_fini(ncclComm_t comm);
void fake_profiler_call_start(struct fake_task *task,
                              int group_depth); /* GroupApi, CollApi or P2pApi */
void fake_profiler_call_stop(struct fake_task *task);
void fake_profiler_group_end(int depth_left); /* at each GroupEnd */
void fake_profiler_group_done(void);          /* at the end of the outermost one */
void fake_profiler_call_nested(int change);   /* implicit group of a call inside a user's group */
void fake_profiler_launch(ncclComm_t comm, struct fake_task *tasks, CUstream stream, bool start,
                          bool captured);

/* ---- nccl_comm.c ---- */
#define FAKE_MAGIC UINT64_C(0x0280028002800280)
struct fake_userop {
    bool used;
    ncclDataType_t type;
    bool in_memory;
    uint64_t scalar;
};
struct ncclComm {
    uint64_t start_magic;
    char id[NCCL_UNIQUE_ID_BYTES];
    uint64_t comm_hash;
    int rank, nranks, nnodes;
    int cuda_dev;
    CUcontext ctx;
    uint64_t bus_id;
    ncclConfig_t config;
    char *net_name;
    bool check_pointers;
    unsigned fork_generation; /* a forked child can't use its parent's communicators */

    struct fake_machine machine;
    struct fake_shm *shm;
    atomic_int async; /* ncclResult_t */
    atomic_int abort_flag;
    ncclResult_t init_state;
    bool revoked, finalize_called, suspended;
    int child_count, split_count;

    pthread_t job_thread; /* of a non-blocking group that this communicator is in */
    atomic_bool job_running;
    atomic_int job_done;

    struct fake_userop *userops;
    int userop_count;

    void *tuner_ctx;
    bool has_tuner;
    void *profiler_ctx;
    bool has_profiler;
    uint64_t seq_number[FAKE_NUM_FUNCS];
    uint64_t op_count;
    uint64_t mem_bytes;

    /* Order on the device: see nccl_exec.c. */
    pthread_mutex_t exec_lock;
    pthread_cond_t exec_cond;
    uint64_t tickets, tickets_done;
    int inflight, persistent;
    bool busy;
    uint64_t exec_seq, last_end_ns;
    bool broken;

    /* Captures: see nccl_capture.c. */
    struct fake_capture *captures;
    CUstream live_stream;
    CUevent serial_event, scratch_event;
    bool ever_captured;

    atomic_int refs; /* the handle, and each plan that may still run */
    uint64_t end_magic;
};
ncclResult_t fake_comm_check(const struct ncclComm *comm, const char *op);
ncclResult_t
fake_comm_ready(ncclComm_t comm); /* asks the public ncclCommGetAsyncError, as NCCL does */
void fake_comm_set_async(ncclComm_t comm, ncclResult_t res);
void fake_comm_unref(ncclComm_t comm);
ncclComm_t fake_comm_new(void);
uint64_t fake_hash(const void *data, size_t size, uint64_t start);
extern unsigned fake_fork_generation;

/* ---- nccl_init.c ---- */
ncclResult_t fake_init_once(void); /* what ncclGetUniqueId and every init need */
struct fake_init {
    char id[NCCL_UNIQUE_ID_BYTES];
    int nranks, rank;
    const char *func;
    ncclComm_t comm; /* NULL: a split that gives this rank no communicator */
    /* children only */
    struct ncclComm *parent;
    bool is_split;
    int color, key;
    ncclComm_t *newcomm; /* set when the child is complete */
};
/* Now, or at the group's end; `state_of` is the communicator that shows the progress. */
ncclResult_t fake_init_launch(ncclComm_t state_of, const struct fake_init *what);
ncclResult_t fake_init_rank(ncclComm_t *newcomm, int nranks, const ncclUniqueId *id, int rank,
                            int dev, const ncclConfig_t *config, const char *func);

/* ---- nccl_group.c ---- */
ncclResult_t fake_group_start(void);
ncclResult_t fake_group_end(ncclSimInfo_t *sim);
ncclResult_t fake_group_error(ncclResult_t res); /* remembers a failure inside a group */
int fake_group_depth(void);
typedef ncclResult_t (*fake_job_fn)(ncclComm_t comm, void *arg);
/* Runs fn now, or at the outermost group end; arg is freed after. */
ncclResult_t fake_group_job(ncclComm_t comm, fake_job_fn fn, void *arg, bool destroys);
ncclResult_t fake_group_join_thread(ncclComm_t comm);

struct fake_task {
    struct fake_task *next;
    ncclComm_t comm;
    CUstream stream;
    ncclFunc_t func; /* all-to-all, gather and scatter are sends and receives by now */
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t user_op;
    struct fake_redop op;
    int root; /* the peer of a send or receive */
    bool captured;
    struct fake_choice choice;
    int event_mask;
    void *group_event, *api_event, *event;
};
ncclResult_t fake_group_add(struct fake_task *task); /* takes it */

/* ---- nccl_capture.c: NCCL's nodes in a captured graph ---- */
struct fake_graph_id {
    CUgraph graph; /* NULL: not capturing */
    cuuint64_t id;
    CUstream origin;
};
ncclResult_t fake_capture_query(CUstream stream, struct fake_graph_id *out);
ncclResult_t fake_capture_before(ncclComm_t comm, const struct fake_graph_id *graph,
                                 CUstream launch);
ncclResult_t fake_capture_after(ncclComm_t comm, const struct fake_graph_id *graph,
                                CUstream launch);
void fake_capture_fini(ncclComm_t comm);
ncclResult_t fake_stream_wait(ncclComm_t comm, CUstream who, CUstream whom);

/* ---- nccl_exec.c: what runs on the device ---- */
ncclResult_t fake_exec_launch(ncclComm_t comm, CUstream stream, struct fake_task *tasks,
                              bool captured);
void fake_exec_wait_idle(ncclComm_t comm, bool graphs_too);

/* ---- nccl_count.c: NCCLSHIM_FAKE_NCCL_COUNTS ---- */
struct fake_counter {
    const char *name;
    atomic_ulong count;
    struct fake_counter *next;
};
void fake_count_add(struct fake_counter *c);
#define COUNT(fn)                                             \
    do {                                                      \
        static struct fake_counter counter_ = {#fn, 0, NULL}; \
        fake_count_add(&counter_);                            \
    } while (0)
/* Entry of a function that NCCL annotates for NVTX: the first of them reads the environment. */
#define API_ENTER(fn)               \
    do {                            \
        COUNT(fn);                  \
        fake_ask_stage(STAGE_NVTX); \
    } while (0)

/* Public functions that NCCL calls through its own PLT, and so can be interposed there as well. */
ncclResult_t ncclGetVersion(int *version);
ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error);
ncclResult_t ncclBroadcast(const void *sendbuff, void *recvbuff, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream);
ncclResult_t ncclCommRegister(ncclComm_t comm, void *buff, size_t size, void **handle);
ncclResult_t ncclCommDeregister(ncclComm_t comm, void *handle);
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t win);
const char *ncclGetErrorString(ncclResult_t result);

#endif
