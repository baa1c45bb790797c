// Part of OperationKit, released under the MIT license.
// See LICENSE in the repository's root.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

/// Returns whether this system supports counting allocations.
int allocation_counter_is_available(void);

/// Begins or ends counting, which has no cost while it is off. Counting is initially off.
void allocation_counter_set_counting(int counting);

/// Returns the number of blocks that the program has allocated while counting was on.
int64_t allocation_counter_blocks(void);

/// Returns the number of bytes that were allocated and not freed while counting was on, including the allocator's
/// rounding.
int64_t allocation_counter_live_bytes(void);

#endif
