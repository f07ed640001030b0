/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of one process, as it lies in its file. Written by libncclshim.so and, for the records,
 * by the GPU itself; read by anyone. docs/log-format.md tells the same in words.
 *
 * The file is on tmpfs while the process lives (the GPU's stores land in it) and is copied to disk
 * by `ncclshim run` and `ncclshim collect`. All numbers are little-endian; all times are
 * nanoseconds, GPU times by %globaltimer, host times by CLOCK_REALTIME; all sizes are bytes.
 * Version 1.
 *
 * Concurrency: the writer never takes a lock and never moves or shrinks a thing. Whatever is
 * published later than it is written has a state or type word that is stored last (release); a
 * reader loads that word first (acquire). A reader only ever reads.
 */
#ifndef NCCLSHIM_LOG_H
#define NCCLSHIM_LOG_H

#include <stdint.h>

#define NCCLSHIM_LOG_MAGIC "NCCLSHIM"
#define NCCLSHIM_LOG_VERSION 1u
#define NCCLSHIM_LOG_BYTE_ORDER 0x01020304u
#define NCCLSHIM_LOG_HEADER_BYTES 4096u
#define NCCLSHIM_LOG_SECTIONS 48u
#define NCCLSHIM_LOG_SUFFIX ".ncclshim" /* of every log file's name */

/* ---- header ---------------------------------------------------------------------------------- */

enum ncclshim_log_state {
    NCCLSHIM_LOG_OPEN = 1,   /* being written, or its process was killed */
    NCCLSHIM_LOG_CLOSED = 2, /* its process ended through exit() */
};

enum ncclshim_section_type {
    NCCLSHIM_SECTION_NOTES = 1, /* entries of ncclshim_note, used = bytes */
    NCCLSHIM_SECTION_COMMS = 2, /* array of ncclshim_comm, used = entries */
    NCCLSHIM_SECTION_SITES = 3, /* array of ncclshim_site, used = entries */
    NCCLSHIM_SECTION_RING = 4,  /* one ncclshim_ring page, then its records */
};

struct ncclshim_section {
    uint32_t type;   /* enum ncclshim_section_type; 0 = no section yet; stored last */
    uint32_t number; /* counts sections of one type from 0; for a ring: its ring number */
    uint64_t offset; /* from the start of the file, a multiple of 4096 */
    uint64_t bytes;  /* room */
    uint64_t used;   /* see the type; grows by atomic adds, may run past the room when it is full:
                        what did not fit was not written */
};

struct ncclshim_log_header {
    char magic[8];
    uint32_t version;
    uint32_t byte_order;
    uint32_t header_bytes; /* NCCLSHIM_LOG_HEADER_BYTES */
    uint32_t state;        /* enum ncclshim_log_state */
    uint64_t file_bytes;   /* a shorter file was cut by somebody */

    /* Who wrote it. pid is that of the innermost pid namespace; with pid_ns, boot_id and
     * start_ticks (field 22 of /proc/PID/stat) it names one process of one boot of one machine. */
    uint32_t pid;
    uint32_t uid;
    uint64_t start_ticks;
    uint64_t pid_ns; /* inode of /proc/self/ns/pid */
    char boot_id[40];
    char host[64];
    char shim_version[16];
    uint64_t created_ns;
    uint64_t closed_ns; /* 0 while open */

    /* Losses, each counted exactly. */
    uint64_t notes_lost; /* notes for which there was no room */
    uint64_t comms_lost; /* communicators for which there was no room */
    uint64_t sites_lost; /* calls (captured: at capture) that got no site: not in any count below */

    uint64_t settings_digest; /* FNV-1a of the effective NCCL settings, see docs; 0 = not yet */
    uint64_t reserved[12];
    struct ncclshim_section sections[NCCLSHIM_LOG_SECTIONS];
    uint8_t tail[4096 - 320 - 32 * NCCLSHIM_LOG_SECTIONS];
};

/* ---- notes: what is said once ---------------------------------------------------------------- */

/*
 * Notes lie on 64-byte boundaries. A reader steps 64 bytes while `type` is 0 and `bytes` is 0, and
 * else `bytes` rounded up to 64; a note of type PENDING was being written when the process died.
 * Texts are UTF-8 as the process had them: not to be trusted, no terminating zero counted on.
 */
#define NCCLSHIM_NOTE_ALIGN 64u

enum ncclshim_note_type {
    NCCLSHIM_NOTE_PENDING = 1,
    NCCLSHIM_NOTE_COMMAND = 2,  /* text: arguments, each ended by a zero byte */
    NCCLSHIM_NOTE_PROFILE = 3,  /* text: name \0 path \0 (path empty for `none`); value = digest of the file */
    NCCLSHIM_NOTE_SETTING = 4,  /* text: NAME \0 value \0; a = ncclshim_origin; b = 1 when the profile
                                   asked otherwise and lost (value is what is in force) */
    NCCLSHIM_NOTE_LIBRARY = 5,  /* a = library number; value = NCCL version code (22809); text: path \0 */
    NCCLSHIM_NOTE_GPU = 6,      /* a = ring number; body: ncclshim_gpu; text: name \0 */
    NCCLSHIM_NOTE_ANCHOR = 7,   /* a = ring number; body: ncclshim_anchor */
    NCCLSHIM_NOTE_WARNING = 8,  /* text: one sentence; a = comm number + 1 or 0 */
    NCCLSHIM_NOTE_RULE = 9,     /* a = index in the profile's rules; body: ncclshim_rule (counters live); text: rule \0 */
    NCCLSHIM_NOTE_ASKED = 10,   /* NCCL asked for a variable: text: NAME \0 value \0; b = 1 when set; a =
                                   NCCLSHIM_ORIGIN_COMM and value = comm number + 1 when it was given to
                                   one communicator alone. Each pair of name and value once: a second
                                   value is the program's doing */
    NCCLSHIM_NOTE_COMM_TEXT = 11, /* a = comm number; b = ncclshim_comm_text; text \0 */
    NCCLSHIM_NOTE_MISSED = 12,  /* NCCL is mapped but no call came through: text: path \0 */
};

enum ncclshim_origin {
    NCCLSHIM_ORIGIN_USER = 0,     /* was in the environment before us */
    NCCLSHIM_ORIGIN_PROFILE = 1,  /* [env] */
    NCCLSHIM_ORIGIN_OVERRIDE = 2, /* [env override] */
    NCCLSHIM_ORIGIN_CONF = 3,     /* one of NCCL's own files */
    NCCLSHIM_ORIGIN_PROGRAM = 4,  /* set or changed by the program after start */
    NCCLSHIM_ORIGIN_COMM = 5,     /* [comm] section, for one communicator */
    NCCLSHIM_ORIGIN_SHIM = 6,     /* ours: the doors through which NCCL finds the shim */
};

enum ncclshim_comm_text {
    NCCLSHIM_COMM_NAME = 0,    /* the name the program gave (ncclConfig_t.commName) */
    NCCLSHIM_COMM_SECTION = 1, /* the [comm NAME] section that matched */
    NCCLSHIM_COMM_SETTING = 2, /* "NAME=value" given to this communicator alone */
};

struct ncclshim_note {
    uint32_t type;  /* enum ncclshim_note_type; stored last */
    uint32_t bytes; /* whole note with this head; stored before everything else */
    uint32_t a;
    uint32_t b;
    uint64_t value;
    uint64_t time_ns; /* host clock */
    /* then a body of fixed size (by type), then text */
};

struct ncclshim_gpu {
    uint32_t device;       /* ordinal in the process (after CUDA_VISIBLE_DEVICES) */
    uint32_t sm;           /* compute capability: 90 = 9.0 */
    uint32_t stamp;        /* enum ncclshim_stamp_kind */
    uint32_t clock_step_ns; /* smallest step seen of %globaltimer; 0 = not measured */
    uint32_t floor_ns;     /* median of an empty stamp pair; 0 = not measured */
    uint32_t floor_max_ns; /* largest of those pairs */
    char pci_bus_id[16];   /* "0000:1b:00.0" */
    uint8_t uuid[16];
    uint64_t memory_bytes;
};

enum ncclshim_stamp_kind {
    NCCLSHIM_STAMP_NONE = 0,      /* counts only */
    NCCLSHIM_STAMP_PLAIN = 1,     /* ordinary launches */
    NCCLSHIM_STAMP_DEPENDENT = 2, /* programmatic dependent launch */
};

/* At some instant between host_before_ns and host_after_ns the GPU's clock read gpu_ns. */
struct ncclshim_anchor {
    uint64_t gpu_ns;
    uint64_t host_before_ns;
    uint64_t host_after_ns;
    uint64_t reserved;
};

/* One [tune] rule. The counters go on changing. */
struct ncclshim_rule {
    uint64_t matched; /* NCCL asked about a call that the rule covers, and it was applied */
    uint64_t masked;  /* covered, but NCCL or the user had ruled that combination out */
    uint64_t capped;  /* applied with fewer channels than asked */
    uint64_t reserved;
};

/* ---- communicators --------------------------------------------------------------------------- */

enum ncclshim_comm_state {
    NCCLSHIM_COMM_FREE = 0,
    NCCLSHIM_COMM_STARTING = 1, /* init called; in a group or non-blocking: not yet known to be good */
    NCCLSHIM_COMM_READY = 2,
    NCCLSHIM_COMM_FAILED = 3,
    NCCLSHIM_COMM_ENDED = 4, /* destroyed, aborted or revoked */
};

enum ncclshim_comm_flags {
    NCCLSHIM_COMM_NONBLOCKING = 1,   /* counted, not timed */
    NCCLSHIM_COMM_ADOPTED = 2,       /* its init did not come through us */
    NCCLSHIM_COMM_MIXED_USE = 4,     /* called eagerly and under capture */
    NCCLSHIM_COMM_DEVICE_API = 8,    /* ncclDevCommCreate: traffic that no wrapper sees */
    NCCLSHIM_COMM_SYMMETRIC = 16,    /* has symmetric windows */
    NCCLSHIM_COMM_CONFIG_LOST = 32,  /* the profile's [comm] keys could not be applied */
    NCCLSHIM_COMM_COUNTED = 64,      /* missed_calls is exact: NCCL tells of every call (2.28.3 on;
                                         before, only for ADOPTED communicators) */
};

#define NCCLSHIM_UNKNOWN (-1)       /* of an int32_t that is not known */
#define NCCLSHIM_UNDEF INT32_MIN    /* a config field nobody set (NCCL_CONFIG_UNDEF_INT) */

struct ncclshim_comm {
    uint32_t state;      /* stored last when the entry is made */
    uint32_t flags;
    uint32_t library;    /* number of the NCCL copy it belongs to */
    int32_t parent;      /* comm number it was split, shrunk or grown from; -1 none */
    int32_t rank;
    int32_t ranks;
    int32_t nodes;       /* from NCCL's plugins; -1 unknown */
    int32_t device;
    int32_t ring;        /* ring number of its GPU; -1 = not timed */
    int32_t asked_min_ctas, asked_max_ctas; /* what the [comm] section wanted; UNDEF = nothing */
    int32_t given_min_ctas, given_max_ctas; /* by config, or by NCCL_M.._CTAS, which goes first */
    int32_t channels;    /* most channels that NCCL used for one call; -1 unknown */
    uint64_t hash;       /* NCCL's commId / commHash, the same on all ranks; 0 unknown */
    uint64_t id_digest;  /* of the unique id it was made from, the same on all ranks; 0 unknown */
    uint64_t created_ns, ready_ns, ended_ns;
    uint64_t wrapped_calls; /* operations issued through the shim */
    uint64_t missed_calls;  /* calls that NCCL told of while no wrapper was around them: not
                               intercepted. NCCL's own count is wrapped_calls + missed_calls; an
                               all-to-all that bypassed us counts each of its sends and receives */
    uint64_t failed_calls;  /* wrapped calls that returned an error (in progress is none) */
    char name[64];          /* cut; the whole is in a note */
    uint64_t settings_digest; /* of the settings NCCL had when it was made */
    uint64_t reserved[8];
};

/* ---- call sites ------------------------------------------------------------------------------ */

enum ncclshim_site_flags {
    NCCLSHIM_SITE_CAPTURED = 1, /* one call of one graph capture; each replay is one run */
    NCCLSHIM_SITE_TIMED = 2,    /* has stamps: its runs are in the ring */
    NCCLSHIM_SITE_PART = 4,     /* part of a group of several calls: no time of its own */
    NCCLSHIM_SITE_IN_PLACE = 8,
    NCCLSHIM_SITE_CHAINED = 16, /* its start is the end of the call before it (no work between) */
    NCCLSHIM_SITE_FILTERED = 32, /* left out of timing by [log] keys */
};

#define NCCLSHIM_NO_CHOICE 255 /* algo, proto: NCCL did not say */

/* 64 bytes. A site's number is its index over all SITES sections in order. */
struct ncclshim_site {
    uint32_t state; /* 0 = not written yet, 1 = valid; stored last */
    uint32_t comm;  /* comm number */
    uint8_t op;     /* NCCLSHIM_OPS number */
    uint8_t dtype;
    uint8_t redop;  /* 255 = none or user-made */
    uint8_t flags;
    uint8_t algo;
    uint8_t proto;
    uint8_t channels; /* 0 = NCCL did not say */
    uint8_t warps;    /* 0 = NCCL did not say */
    uint64_t count; /* elements, as the caller gave them */
    uint64_t bytes; /* size of the larger of send and receive buffer of one rank, as nccl-tests counts */
    uint32_t capture; /* number of the capture it belongs to (from 1); 0 = eager */
    uint32_t index;   /* captured: position among the calls of its capture, on all communicators */
    uint32_t group;   /* number of its group of several calls (from 1); 0 = alone */
    int32_t root;     /* root or peer; -1 = none. For op GROUP: number of calls */
    uint64_t issued;  /* eager: calls made by the host; captured: 1 */
    uint64_t stamped; /* eager: those that got stamps; captured: 1 or 0 */
};

/* ---- rings: what the GPU writes -------------------------------------------------------------- */

/* First 4096 bytes of a RING section; the records follow. */
struct ncclshim_ring {
    uint32_t capacity;     /* records, a power of two */
    uint32_t record_bytes; /* 32 */
    int32_t device;
    uint32_t reserved0;
    uint64_t lap;          /* written by the GPU: number (from 0) of the last record that went to slot 0 */
    uint8_t reserved[4096 - 24];
};

/*
 * Record number n (from 0) lies in slot n % capacity. Each half is written by one 16-byte store and
 * carries sequence = (uint32_t)(n + 1): where the two differ, the record is half written; where they
 * belong to another lap, it is not there yet, or overwritten.
 */
struct ncclshim_record {
    uint64_t start_ns;
    uint32_t site;
    uint32_t sequence;
    uint64_t end_ns;
    uint32_t run; /* this is the n-th run (from 0) of the site */
    uint32_t sequence2;
};

#if defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
_Static_assert(sizeof(struct ncclshim_section) == 32, "section is 32 bytes");
_Static_assert(sizeof(struct ncclshim_log_header) == 4096, "header is one page");
_Static_assert(sizeof(struct ncclshim_note) == 32, "note head is 32 bytes");
_Static_assert(sizeof(struct ncclshim_gpu) == 64, "gpu body is 64 bytes");
_Static_assert(sizeof(struct ncclshim_comm) == 256, "comm is 256 bytes");
_Static_assert(sizeof(struct ncclshim_site) == 64, "site is 64 bytes");
_Static_assert(sizeof(struct ncclshim_ring) == 4096, "ring head is one page");
_Static_assert(sizeof(struct ncclshim_record) == 32, "record is 32 bytes");
#endif

#endif
