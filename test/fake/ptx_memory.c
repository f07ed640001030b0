/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads, stores and atomics of the PTX machine.
 *
 * Memory is shared with host threads, other workers and other processes, so each access is one
 * machine access: atomic loads and stores of the type's size, and 16 bytes at once for the vector
 * store of two 64-bit values, which a GPU also does in one piece.
 */
#include "test/fake/ptx_parts.h"

typedef uint64_t pair __attribute__((vector_size(16), may_alias));

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#endif

/* The thread sanitizer doesn't know fences: it gets an exchange, which orders as much on x86. */
void ptx_fence(void)
{
#ifdef UNDER_TSAN
    static uint32_t nothing;
    __atomic_fetch_add(&nothing, 0, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

static uint64_t load(uint64_t address, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return __atomic_load_n((uint8_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
    case 2:
        return __atomic_load_n((uint16_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
    case 4:
        return __atomic_load_n((uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
    default:
        return __atomic_load_n((uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
    }
}

static void store(uint64_t address, unsigned bytes, uint64_t value)
{
    switch (bytes) {
    case 1:
        __atomic_store_n((uint8_t *)(uintptr_t)address, (uint8_t)value, __ATOMIC_RELEASE);
        break;
    case 2:
        __atomic_store_n((uint16_t *)(uintptr_t)address, (uint16_t)value, __ATOMIC_RELEASE);
        break;
    case 4:
        __atomic_store_n((uint32_t *)(uintptr_t)address, (uint32_t)value, __ATOMIC_RELEASE);
        break;
    default:
        __atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELEASE);
        break;
    }
}

static uint64_t combine(const struct ptx_insn *i, uint64_t old, uint64_t value)
{
    bool less =
        i->is_signed ? ptx_extend(value, i->bytes) < ptx_extend(old, i->bytes) : value < old;
    switch (i->op) {
    case I_ADD_MEM:
        return (old + value) & i->mask;
    case I_EXCH_MEM:
        return value;
    case I_MAX_MEM:
        return less ? old : value;
    case I_MIN_MEM:
        return less ? value : old;
    case I_AND_MEM:
        return old & value;
    case I_OR_MEM:
        return old | value;
    default:
        return old ^ value;
    }
}

static uint64_t change(const struct ptx_insn *i, const uint64_t *r, uint64_t address)
{
    uint64_t old = load(address, i->bytes), new_value;
    for (;;) {
        if (i->op == I_CAS_MEM) {
            if (old != r[i->s[1]]) {
                return old;
            }
            new_value = r[i->s[2]];
        } else {
            new_value = combine(i, old, r[i->s[1]]);
        }
        bool done;
        if (i->bytes == 4) {
            uint32_t expected = (uint32_t)old;
            done = __atomic_compare_exchange_n((uint32_t *)(uintptr_t)address, &expected,
                                               (uint32_t)new_value, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
            old = done ? old : expected;
        } else {
            done = __atomic_compare_exchange_n((uint64_t *)(uintptr_t)address, &old, new_value,
                                               false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        }
        if (done) {
            return old;
        }
    }
}

CUresult ptx_access(const struct ptx_insn *i, uint64_t *r, struct region_cache *known)
{
    uint64_t address = r[i->s[0]] + (uint64_t)(int64_t)i->offset;
    unsigned bytes = (unsigned)i->bytes * i->n;
    if (__builtin_expect(!region_allows(known, address, bytes), 0)) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    if (__builtin_expect(address % bytes != 0, 0)) {
        return CUDA_ERROR_MISALIGNED_ADDRESS;
    }
    switch (i->op) {
    case I_LD:
        for (unsigned k = 0; k < i->n; k++) {
            uint64_t value = load(address + k * i->bytes, i->bytes);
            r[i->d[k]] = (i->is_signed ? (uint64_t)ptx_extend(value, i->bytes) : value) & i->mask;
        }
        break;
    case I_ST:
        for (unsigned k = 0; k < i->n; k++) {
            store(address + k * i->bytes, i->bytes, r[i->d[k]]);
        }
        break;
    case I_ST_16:
        ptx_fence();
        *(volatile pair *)(uintptr_t)address = (pair){r[i->d[0]], r[i->d[1]]};
        break;
    default: {
        uint64_t old = change(i, r, address);
        if (i->d[0] >= 0) {
            r[i->d[0]] = old;
        }
    }
    }
    return CUDA_SUCCESS;
}
