// SPDX-License-Identifier: MIT
#include "unit.h"

#include <pthread.h>

#include "voice/ring.h"

static void items_come_out_in_order(void **state)
{
	struct ring *r;
	int16_t in[100], out[100];

	assert_int_equal(ring_new(2, 64, &r), 0);
	for (int i = 0; i < 100; i++)
		in[i] = (int16_t)i;
	for (int round = 0; round < 50; round++) {
		assert_int_equal(ring_write(r, in, 50, 0), 50);
		assert_int_equal(ring_used(r), 50);
		assert_int_equal(ring_room(r), 14);
		assert_int_equal(ring_read(r, out, 100, 0), 50);
		assert_memory_equal(in, out, 50 * sizeof(*in));
	}
	assert_int_equal(ring_written(r), 2500);
	assert_int_equal(ring_consumed(r), 2500);
	ring_free(r);
}

static void a_full_ring_takes_what_fits_and_overwrites_nothing(void **state)
{
	struct ring *r;
	uint32_t in[20], out[20];

	assert_int_equal(ring_new(4, 16, &r), 0);
	for (uint32_t i = 0; i < 20; i++)
		in[i] = i;
	assert_int_equal(ring_write(r, in, 20, 0), 16);
	assert_int_equal(ring_write(r, in + 16, 4, 0), 0);
	assert_int_equal(ring_write(r, in + 16, 4, 5), 0);
	assert_int_equal(ring_read(r, out, 20, 0), 16);
	for (uint32_t i = 0; i < 16; i++)
		assert_int_equal(out[i], i);
	ring_free(r);
}

static void counts_are_rounded_up_and_bad_sizes_refused(void **state)
{
	struct ring *r;

	assert_int_equal(ring_new(2, 5, &r), 0);
	assert_int_equal(ring_room(r), 8);
	ring_free(r);
	assert_int_equal(ring_new(0, 5, &r), -EINVAL);
	assert_int_equal(ring_new(2, 0, &r), -EINVAL);
	assert_int_equal(ring_new(16, SIZE_MAX / 8, &r), -EINVAL);
	ring_free(NULL);
}

static void the_end_is_seen_after_the_last_item(void **state)
{
	struct ring *r;
	char c = 'x', d;

	assert_int_equal(ring_new(1, 4, &r), 0);
	assert_int_equal(ring_read(r, &d, 1, 0), -EAGAIN);
	assert_int_equal(ring_read(r, &d, 1, 5), -EAGAIN);
	ring_write(r, &c, 1, 0);
	ring_end(r);
	assert_int_equal(ring_write(r, &c, 1, 0), -EPIPE);
	assert_int_equal(ring_read(r, &d, 1, -1), 1);
	assert_int_equal(d, 'x');
	assert_int_equal(ring_read(r, &d, 1, -1), 0);
	ring_free(r);
}

static void cancel_loses_the_queue_and_reset_brings_it_back(void **state)
{
	struct ring *r;
	char c = 'x';

	assert_int_equal(ring_new(1, 4, &r), 0);
	ring_write(r, &c, 1, 0);
	ring_cancel(r);
	assert_int_equal(ring_write(r, &c, 1, -1), -ECANCELED);
	assert_int_equal(ring_read(r, &c, 1, -1), -ECANCELED);
	ring_reset(r);
	assert_int_equal(ring_read(r, &c, 1, 0), -EAGAIN);
	assert_int_equal(ring_write(r, &c, 1, 0), 1);
	assert_int_equal(ring_read(r, &c, 1, 0), 1);
	ring_free(r);
}

#define MANY 400000

static void *write_many(void *arg)
{
	struct ring *r = arg;
	uint32_t buf[37];

	for (uint32_t i = 0; i < MANY; ) {
		uint32_t n = i % 37 + 1;

		if (n > MANY - i)
			n = MANY - i;
		for (uint32_t k = 0; k < n; k++)
			buf[k] = i + k;
		if (ring_write(r, buf, n, -1) != (ssize_t)n)
			return r;
		i += n;
	}
	ring_end(r);
	return NULL;
}

static void two_threads_lose_and_repeat_nothing(void **state)
{
	struct ring *r;
	pthread_t t;
	uint32_t buf[53], next = 0;
	void *bad;
	ssize_t n;

	assert_int_equal(ring_new(4, 64, &r), 0);
	pthread_create(&t, NULL, write_many, r);
	while ((n = ring_read(r, buf, next % 53 + 1, -1)) > 0)
		for (ssize_t k = 0; k < n; k++)
			if (buf[k] != next++)
				fail_msg("item %u is %u", next - 1, buf[k]);
	pthread_join(t, &bad);
	assert_null(bad);
	assert_int_equal(n, 0);
	assert_int_equal(next, MANY);
	ring_free(r);
}

static void *read_once(void *arg)
{
	char c;

	return (void *)(intptr_t)ring_read(arg, &c, 1, -1);
}

static void *write_once(void *arg)
{
	return (void *)(intptr_t)ring_write(arg, "abcde", 5, -1);
}

static void cancel_wakes_a_sleeping_reader_and_writer(void **state)
{
	struct ring *r;
	pthread_t t;
	void *ret;

	assert_int_equal(ring_new(1, 4, &r), 0);
	pthread_create(&t, NULL, read_once, r);
	ring_cancel(r);
	pthread_join(t, &ret);
	assert_int_equal((intptr_t)ret, -ECANCELED);
	ring_reset(r);
	pthread_create(&t, NULL, write_once, r);
	while (ring_room(r) > 0)
		usleep(100);
	ring_cancel(r);
	pthread_join(t, &ret);
	/* Four of the five were in before it was cancelled. */
	assert_int_equal((intptr_t)ret, 4);
	ring_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_come_out_in_order),
		cmocka_unit_test(a_full_ring_takes_what_fits_and_overwrites_nothing),
		cmocka_unit_test(counts_are_rounded_up_and_bad_sizes_refused),
		cmocka_unit_test(the_end_is_seen_after_the_last_item),
		cmocka_unit_test(cancel_loses_the_queue_and_reset_brings_it_back),
		cmocka_unit_test(two_threads_lose_and_repeat_nothing),
		cmocka_unit_test(cancel_wakes_a_sleeping_reader_and_writer),
	};

	return UNIT_RUN(tests);
}
