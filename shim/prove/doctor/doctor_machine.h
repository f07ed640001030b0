/* SPDX-License-Identifier: Apache-2.0 */
/* Judgements on the machine below a root: PCI bridges and IOMMU, driver, shared memory, limits,
 * containers.
 */
#ifndef NCCLSHIM_PROVE_DOCTOR_MACHINE_H
#define NCCLSHIM_PROVE_DOCTOR_MACHINE_H

#include <stdint.h>

#include "shim/prove/doctor/doctor_files.h"
#include "shim/prove/doctor/doctor_list.h"

/* ACS of the bridges above NVIDIA's GPUs, the IOMMU's mode, as far as sysfs lets us read them. */
void doctor_pci_judge(struct doctor_list *l, const char *root);

/* The kernel's driver; `nvml`: NVML could be used. Nothing is said where none is loaded. */
void doctor_driver_judge(struct doctor_list *l, const char *root, bool nvml);

/* /dev/shm as a process sees it. */
struct doctor_shm {
    bool there;
    uint64_t bytes, free_bytes; /* bytes 0 = without a limit */
    uint64_t log_bytes;         /* taken by ncclshim's logs of all users that can be read */
};
/* `pid` 0 = as we see it. */
void doctor_shm_read(struct doctor_shm *s, const char *root, int pid);
void doctor_shm_judge(struct doctor_list *l, const struct doctor_shm *s);

/* Locked memory, against what RDMA needs; container and user namespace. pid 0 = our own. */
void doctor_memlock_judge(struct doctor_list *l, const char *root, int pid);
void doctor_container_judge(struct doctor_list *l, const char *root, int pid);

#endif
