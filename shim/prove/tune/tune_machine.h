/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who else is on the machine: load, and other processes on the GPUs (through NVML, found at run
 * time; nothing is known without it). Only looked at, never changed.
 */
#ifndef NCCLSHIM_PROVE_TUNE_MACHINE_H
#define NCCLSHIM_PROVE_TUNE_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

#define MACHINE_GPUS 16
#define MACHINE_OTHERS 16

struct machine_gpu {
    unsigned sm_mhz, memory_mhz, celsius; /* 0 = not known */
};

struct machine_look {
    double load; /* of the last minute */
    bool nvml;
    struct machine_gpu gpus[MACHINE_GPUS];
    size_t gpu_count;
    int others[MACHINE_OTHERS]; /* processes on GPUs that are not ours */
    size_t other_count;
};

struct tune_machine {
    struct machine_look before, after;
    void *nvml; /* private */
};

/* Look. `ours`: is this process one of ours? (by pid) */
void machine_open(struct tune_machine *m);
void machine_look(struct tune_machine *m, struct machine_look *out);
void machine_close(struct tune_machine *m);
/* "pid 4711 (python3)" and so on; "" when there are none. Returns buf. */
const char *machine_others(const struct machine_look *l, char *buf, size_t size);

#endif
