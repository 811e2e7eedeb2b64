// SPDX-License-Identifier: MIT
/* Whatever a client's schema is: what is admitted validates, and no server hangs or dies of it. */
#include "unit.h"

#include "schema_util.h"

/* The next multiple after 1e17 is 1e17 again where it is counted in floats: that had no end. */
static void multiples_end_and_keep_to_the_bounds(void **state)
{
	refused(JSON("{\"type\":\"number\",\"minimum\":1e300,\"maximum\":1e300,\"multipleOf\":1}"), -EOPNOTSUPP, "15 digits");
	refused(JSON("{\"type\":\"number\",\"minimum\":1e17,\"maximum\":1e17,\"multipleOf\":3}"), -EOPNOTSUPP, "15 digits");
	refused(JSON("{\"type\":\"number\",\"minimum\":1e14,\"maximum\":1e14,\"multipleOf\":0.00001}"), -EOPNOTSUPP, "15 digits");
	refused(JSON("{\"type\":\"number\",\"minimum\":0,\"maximum\":1,\"multipleOf\":1e300}"), -EOPNOTSUPP, "multipleOf");
	refused(JSON("{\"type\":\"number\",\"minimum\":0.31,\"maximum\":0.39,\"multipleOf\":0.1}"), -EINVAL, "no multiple of 0.1");
	/* 0.3 is below the bound by less than was looked at */
	check("{\"type\":\"number\",\"minimum\":0.30000000001,\"maximum\":0.9,\"multipleOf\":0.1}", LIST("0.4", "0.9"), LIST("0.3", "1.0"));
	check("{\"type\":\"number\",\"minimum\":-0.5,\"exclusiveMaximum\":0.5,\"multipleOf\":0.25}", LIST("-0.50", "-0.25", "0.00", "0.25"), LIST("0.50", "-0.75", "0.1"));
	check("{\"type\":\"integer\",\"minimum\":999999999999990,\"maximum\":999999999999999,\"multipleOf\":7}", LIST("999999999999994"), LIST("999999999999990", "999999999999999", "1000000000000001"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multiples_end_and_keep_to_the_bounds),
	};
	return UNIT_RUN(tests);
}
