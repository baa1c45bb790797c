// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#define _GNU_SOURCE
#include "AllocationCounter.h"

#if defined(__GLIBC__) || defined(__linux__)

#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>

// The program's definitions of these functions take precedence over those of the C library, which also exports them
// under the following names.
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static _Atomic int64_t blocks;
static _Atomic int64_t live;
static _Atomic int is_counting;

static int counts(void) { return atomic_load_explicit(&is_counting, memory_order_relaxed); }

static void *taken(void *block) {
    if (block && counts()) {
        atomic_fetch_add_explicit(&blocks, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&live, (int64_t)malloc_usable_size(block), memory_order_relaxed);
    }
    return block;
}

static void given(void *block) {
    if (block && counts()) atomic_fetch_sub_explicit(&live, (int64_t)malloc_usable_size(block), memory_order_relaxed);
}

void *malloc(size_t size) { return taken(__libc_malloc(size)); }
void *calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size)); }
void *memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }

void *realloc(void *block, size_t size) {
    given(block);
    void *moved = __libc_realloc(block, size);
    if (!moved && block && size && counts()) {
        atomic_fetch_add_explicit(&live, (int64_t)malloc_usable_size(block), memory_order_relaxed);
        return moved;
    }
    return taken(moved);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    void *block = taken(__libc_memalign(alignment, size));
    if (!block) return ENOMEM;
    *result = block;
    return 0;
}

void free(void *block) {
    given(block);
    __libc_free(block);
}

int allocation_counter_is_available(void) { return 1; }
void allocation_counter_set_counting(int counting) {
    atomic_store_explicit(&is_counting, counting, memory_order_relaxed);
}
int64_t allocation_counter_blocks(void) { return atomic_load_explicit(&blocks, memory_order_relaxed); }
int64_t allocation_counter_live_bytes(void) { return atomic_load_explicit(&live, memory_order_relaxed); }

#else

int allocation_counter_is_available(void) { return 0; }
void allocation_counter_set_counting(int counting) { (void)counting; }
int64_t allocation_counter_blocks(void) { return 0; }
int64_t allocation_counter_live_bytes(void) { return 0; }

#endif
