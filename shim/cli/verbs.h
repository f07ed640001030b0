/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs of the command, one thin file each (shim/cli/VERB.c). A verb parses its options, calls
 * the rooms below, prints, and returns the exit code: 0 good, 1 the answer is "no", 2 the request
 * can't be carried out. argv[0] is the verb's name.
 */
#ifndef NCCLSHIM_CLI_VERBS_H
#define NCCLSHIM_CLI_VERBS_H

#include "shim/base/error.h"

/* X(function, word, one line for the list of verbs) */
#define NCCLSHIM_VERBS(X)                                                                          \
    X(verb_run, "run", "start a command under the shim and collect what its GPUs did")             \
    X(verb_collect, "collect", "collect from servers that already run, or in a side-car")          \
    X(verb_profiles, "profiles", "list the profiles that a name can mean")                         \
    X(verb_show, "show", "what a profile would set, and where each value comes from")              \
    X(verb_check, "check", "what NCCL would make of a profile: errors, dangers, hints")            \
    X(verb_report, "report", "what happened in a run: times, waiting, settings, what to look at")  \
    X(verb_bench, "bench", "play collectives on the GPUs: sizes, or the calls of a recorded run") \
    X(verb_ab, "ab", "one command under several profiles in turns, and which is better")          \
    X(verb_tune, "tune", "find settings under which the calls of a run take less time, and prove them")  \
    X(verb_compare, "compare", "runs against each other, with intervals and a verdict")            \
    X(verb_export, "export", "calls and statistics for other programs: Perfetto, CSV, ...")        \
    X(verb_clean, "clean", "remove logs that no living process holds")                             \
    X(verb_doctor, "doctor", "what stands in the way: GPUs, limits, libraries, unseen processes") \
    X(verb_top, "top", "live: rates and times of the servers that run now, a bar for each rank")

#define X(fn, word, line) int fn(int argc, char **argv);
NCCLSHIM_VERBS(X)
#undef X

/* Print "ncclshim: FILE:LINE: SENTENCE" on stderr and return `code`, for `return fail(2, &e)`. */
int fail(int code, const struct error *e);

/*
 * Print the usage text of a verb (stdout for --help, exit code 0; stderr for a wrong call, 2) and
 * return the exit code.
 */
int usage(const char *text, int asked_for);

#endif
