// Part of OperationKit, released under the MIT licence.
// See LICENSE in the repository's root.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

/// Whether allocations can be counted on this system.
int allocation_counter_is_available(void);

/// Begins or ends counting; while it is off, which it is at first, an allocation costs what it always does.
void allocation_counter_set_counting(int counting);

/// How many blocks were allocated while counting since the program began.
int64_t allocation_counter_blocks(void);

/// How many bytes were allocated and not freed while counting, the allocator's rounding included.
int64_t allocation_counter_live_bytes(void);

#endif
