/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPUs of this machine and how they are linked, by NVML (libnvidia-ml.so.1, part of the
 * driver), which is loaded at run time; numbers are NVML's, -1 where it did not tell.
 */
#ifndef NCCLSHIM_PROVE_DOCTOR_GPUS_H
#define NCCLSHIM_PROVE_DOCTOR_GPUS_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/prove/doctor/doctor_files.h"
#include "shim/prove/doctor/doctor_list.h"

#define DOCTOR_GPU_PIDS 16

struct doctor_gpu {
    char name[96];
    char bus[32]; /* 00000000:1B:00.0 */
    int gen, gen_max,
        gen_gpu; /* PCIe generation now, most with this slot, most of the card alone */
    int width, width_max;
    int pstate;    /* 0 busy ... 15 idle */
    int mig;       /* 1 = partitioned */
    int processes; /* that compute on it */
    uint32_t pids[DOCTOR_GPU_PIDS];
};

enum { DOCTOR_P2P_OK = 0 }; /* of enum nvmlGpuP2PStatus_t */

struct doctor_pair {
    int read, write, nvlink; /* nvmlGpuP2PStatus_t */
    int ancestor; /* nvmlGpuTopologyLevel_t: 10 one switch, 20 several, 30 host bridge, 40, 50 */
};

struct doctor_gpus {
    bool loaded;
    char why[256]; /* not loaded: why */
    char driver[80];
    unsigned count;
    struct doctor_gpu *gpu;
    struct doctor_pair *pair; /* count * count, [i * count + j] with i < j filled */
};

/* Ask NVML at `library` (a name or a path). Nothing is an error: `loaded` and `why` tell. */
void doctor_gpus_read(struct doctor_gpus *g, const char *library);
void doctor_gpus_free(struct doctor_gpus *g);

/*
 * Judge them. `vendor` of the CPU as /proc/cpuinfo has it ("GenuineIntel"; "ARM" for AArch64; "" =
 * not known), since NCCL's default for peer access depends on it; `env` of the server, or ours.
 * `mine` (may be NULL) tells whether a process belongs to the server that is looked at.
 */
void doctor_gpus_judge(struct doctor_list *l, const struct doctor_gpus *g);
void doctor_p2p_level_judge(struct doctor_list *l, const struct doctor_gpus *g, const char *vendor,
                            const struct doctor_env *env);
void doctor_neighbours_judge(struct doctor_list *l, const struct doctor_gpus *g,
                             bool (*mine)(void *user, uint32_t pid), void *user);
/* The CPU's vendor as above. */
void doctor_cpu_vendor(const char *root, char buf[64]);

#endif
