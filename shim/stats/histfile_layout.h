/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of histfile: the fixed parts of the file, little-endian, no padding between them. */
#ifndef NCCLSHIM_STATS_HISTFILE_LAYOUT_H
#define NCCLSHIM_STATS_HISTFILE_LAYOUT_H

#include <stdint.h>

#define HISTFILE_MAGIC "NCCLHIST"
#define HISTFILE_VERSION 1u
#define HISTFILE_BYTE_ORDER 0x01020304u
#ifndef HISTFILE_SITES_MAX            /* the fuzzer sets it low, to be fast */
#define HISTFILE_SITES_MAX (1u << 20) /* as many as the reader takes from a log */
#endif

struct histfile_head {
    char magic[8];
    uint32_t version, byte_order;
    uint64_t file_bytes;
    uint32_t pid, final;
    uint64_t start_ticks, pid_ns, created_ns;
    char boot_id[40];
    uint64_t written_ns, kept_bytes;
    uint64_t records, bad, lost, torn;
    uint32_t rings, gaps, sites, passes; /* how many of each follow, in this order */
};

struct histfile_cursor {
    uint32_t number, reserved;
    uint64_t next, lost, torn;
};

struct histfile_gap {
    uint32_t comm, ring;
    uint64_t last_end_ns;
};

struct histfile_site { /* then two histograms: ns, gap_ns */
    uint32_t site, reserved;
    uint64_t first_start_ns, last_end_ns, runs_max;
};

struct histfile_pass { /* then three histograms: pass_ns, comm_ns, period_ns */
    uint32_t capture, ring, calls, run, seen, reserved;
    uint64_t start_ns, end_ns, sum_ns, last_start_ns, incomplete;
};

struct histfile_hist { /* then its buckets */
    uint64_t count, sum, min, max;
    uint32_t buckets, reserved;
};

struct histfile_bucket {
    uint16_t octave, bucket;
    uint32_t count;
};

_Static_assert(sizeof(struct histfile_head) == 160, "head");
_Static_assert(sizeof(struct histfile_cursor) == 32, "cursor");
_Static_assert(sizeof(struct histfile_gap) == 16, "gap");
_Static_assert(sizeof(struct histfile_site) == 32, "site");
_Static_assert(sizeof(struct histfile_pass) == 64, "pass");
_Static_assert(sizeof(struct histfile_hist) == 40, "hist");
_Static_assert(sizeof(struct histfile_bucket) == 8, "bucket");

/* The last 8 bytes of the file hold the digest (base/digest.h) of all bytes before them. */

#endif
