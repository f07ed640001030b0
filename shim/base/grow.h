/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that grow one by one. Room is doubled whenever the count is a power of two, so that nothing
 * but the count is kept. Only for arrays that nothing else allocates.
 */
#ifndef NCCLSHIM_BASE_GROW_H
#define NCCLSHIM_BASE_GROW_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline void *grow_room(void *array, size_t count, size_t element_bytes)
{
    size_t room = count ? 2 * count : 1;

    if (count & (count - 1))
        return array;
    /* Not reallocarray: old glibcs lack it (shim/base/glibc_floor.h). */
    return room > SIZE_MAX / element_bytes ? NULL : realloc(array, room * element_bytes);
}

/* The next element, zeroed and counted; NULL when memory is out, and then nothing has changed. */
#define GROW(array, count)                                                                         \
    ({                                                                                             \
        void *grown_ = grow_room(array, count, sizeof(*(array)));                                  \
        if (grown_) {                                                                              \
            (array) = grown_;                                                                      \
            memset(&(array)[count], 0, sizeof(*(array)));                                          \
        }                                                                                          \
        grown_ ? &(array)[(count)++] : NULL;                                                       \
    })

#endif
