/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the functions that the shared object calls can fail. The rows are judged, the list is not:
 * faults.c reads which functions those are from the object itself, and tells of any that stands in
 * neither table.
 */
#ifndef NCCLSHIM_TEST_FAULTS_H
#define NCCLSHIM_TEST_FAULTS_H

enum kind {
    GIVES_NULL,  /* NULL, and errno */
    GIVES_MINUS, /* -1 (of mmap: MAP_FAILED), and errno */
    GIVES_ZERO,  /* 0, and errno */
    GIVES_ERRNO, /* the error itself */
};

/*
 * name, how its failure looks, which failures. A failure is an errno; "short" (the third argument,
 * a length, becomes 1); behind an errno "!" says that the work is done all the same, as with close.
 */
#define FAULTS_LIBC(X)                                             \
    X(__asprintf_chk, GIVES_MINUS, "ENOMEM")                       \
    X(asprintf, GIVES_MINUS, "ENOMEM")                             \
    X(__fprintf_chk, GIVES_MINUS, "ENOMEM")                        \
    X(fprintf, GIVES_MINUS, "ENOMEM")                              \
    X(__register_atfork, GIVES_ERRNO, "ENOMEM")                    \
    X(__vasprintf_chk, GIVES_MINUS, "ENOMEM")                      \
    X(vasprintf, GIVES_MINUS, "ENOMEM")                            \
    X(access, GIVES_MINUS, "EACCES ENOMEM ELOOP")                  \
    X(calloc, GIVES_NULL, "ENOMEM")                                \
    X(clock_gettime, GIVES_MINUS, "EPERM")                         \
    X(close, GIVES_MINUS, "EINTR! EIO! ENOSPC!")                   \
    X(dladdr, GIVES_ZERO, "ENOMEM")                                \
    X(dladdr1, GIVES_ZERO, "ENOMEM")                               \
    X(dlclose, GIVES_MINUS, "ENOMEM!")                             \
    X(dlopen, GIVES_NULL, "ENOMEM EMFILE")                         \
    X(fclose, GIVES_MINUS, "ENOSPC! ENOMEM!")                      \
    X(fgets, GIVES_NULL, "EIO EINTR ENOMEM")                       \
    X(fnmatch, GIVES_MINUS, "ENOMEM")                              \
    X(fopen, GIVES_NULL, "EACCES EMFILE ENOMEM EINTR ENFILE")      \
    X(fopen64, GIVES_NULL, "EACCES EMFILE ENOMEM EINTR ENFILE")    \
    X(fputc, GIVES_MINUS, "ENOMEM")                                \
    X(fread, GIVES_ZERO, "EIO EINTR")                              \
    X(__fxstat, GIVES_MINUS, "ENOMEM EIO EOVERFLOW")               \
    X(fstatvfs, GIVES_MINUS, "EINTR EIO ENOSYS ENOMEM")            \
    X(ftruncate, GIVES_MINUS, "EINTR EIO EINVAL")                  \
    X(gethostname, GIVES_MINUS, "ENAMETOOLONG EPERM")              \
    X(getrandom, GIVES_MINUS, "EINTR EAGAIN ENOSYS")               \
    X(malloc, GIVES_NULL, "ENOMEM")                                \
    X(memfd_create, GIVES_MINUS, "EMFILE ENOMEM")                  \
    X(mkdir, GIVES_MINUS, "EACCES ENOSPC EROFS EEXIST ENOMEM")     \
    X(mmap, GIVES_MINUS, "ENOMEM EACCES EAGAIN EPERM")             \
    X(munmap, GIVES_MINUS, "ENOMEM")                               \
    X(open, GIVES_MINUS, "EACCES EMFILE ENOMEM EINTR ENOENT")      \
    X(open_memstream, GIVES_NULL, "ENOMEM")                        \
    X(openat, GIVES_MINUS, "EACCES EMFILE ENOSPC EINTR EEXIST")    \
    X(posix_fallocate, GIVES_ERRNO, "ENOSPC EINTR EOPNOTSUPP EIO") \
    X(pthread_atfork, GIVES_ERRNO, "ENOMEM")                       \
    X(pread, GIVES_MINUS, "EIO EINTR short")                       \
    X(read, GIVES_MINUS, "EIO EINTR ENOMEM short")                 \
    X(readlink, GIVES_MINUS, "EACCES ENOENT ENOMEM")               \
    X(realloc, GIVES_NULL, "ENOMEM")                               \
    X(realpath, GIVES_NULL, "ENOMEM EACCES ENOENT")                \
    X(scandir, GIVES_MINUS, "EACCES EMFILE ENOMEM")                \
    X(setenv, GIVES_MINUS, "ENOMEM")                               \
    X(__xstat, GIVES_MINUS, "EACCES ENOMEM")                       \
    X(strdup, GIVES_NULL, "ENOMEM")                                \
    X(strndup, GIVES_NULL, "ENOMEM")                               \
    X(unlinkat, GIVES_MINUS, "EACCES EROFS")                       \
    X(write, GIVES_MINUS, "EINTR ENOSPC EPIPE EBADF short")

/*
 * What has no failure that is worth a try: pure functions; questions that always have an answer;
 * and, each with its reason, abort (the last resort of a process without dlsym), dlvsym (whose
 * failure is that case), snprintf (no failure with our formats), unsetenv (fails for a wrong name
 * alone), the mutex calls (of a kind that can't fail).
 */
#define FAULTS_NONE                                                                               \
    "__ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc __cxa_finalize __errno_location "      \
    "__memcpy_chk __memset_chk __strcpy_chk __strcat_chk __stack_chk_fail __isoc23_strtol "       \
    "__isoc23_strtoll __isoc23_strtoull __tls_get_addr _ITM_deregisterTMCloneTable "              \
    "_ITM_registerTMCloneTable __gmon_start__ __snprintf_chk __vsnprintf_chk snprintf vsnprintf " \
    "abort alphasort dl_iterate_phdr dlvsym fnmatch free getenv geteuid getuid getpid "           \
    "secure_getenv bsearch memchr memcmp memcpy memmove memset memrchr pthread_mutex_lock "       \
    "pthread_mutex_unlock qsort sched_yield strcasecmp strchr strchrnul strcmp strcspn strerror " \
    "strlen strncasecmp strncmp strnlen strpbrk strrchr strspn strstr strtok_r strtod strtol "    \
    "strtoll strtoul strtoull tolower toupper unsetenv getauxval ferror feof"

/* Calls of the driver that undo something: tried both ways. A pop that fails has popped, always. */
#define FAULTS_CUDA_UNDO                                                                          \
    "cuCtxPopCurrent_v2 cuThreadExchangeStreamCaptureMode cuStreamEndCapture cuStreamDestroy_v2 " \
    "cuGraphExecDestroy cuGraphDestroy cuMemFree_v2 cuMemHostUnregister cuModuleUnload"

#endif
