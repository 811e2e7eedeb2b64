# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/grammar/ast.c \
	runtime/grammar/compile.c \
	runtime/grammar/compile_check.c \
	runtime/grammar/compile_way.c \
	runtime/grammar/gbnf.c \
	runtime/grammar/match.c \
	runtime/grammar/match_mask.c \
	runtime/grammar/match_set.c \
	runtime/grammar/match_way.c \
	runtime/grammar/number.c \
	runtime/grammar/regex.c \
	runtime/grammar/schema.c \
	runtime/grammar/schema_array.c \
	runtime/grammar/schema_branch.c \
	runtime/grammar/schema_build.c \
	runtime/grammar/schema_choice.c \
	runtime/grammar/schema_const.c \
	runtime/grammar/schema_object.c \
	runtime/grammar/schema_string.c \
	runtime/grammar/schema_tools.c \
	runtime/grammar/vocab.c \
	# EOL
PKGS += jansson
TESTS += \
	test_grammar \
	test_schema \
	test_schema_sound \
	test_schema_valid \
	# EOL
FUZZERS += \
	fuzz_gbnf \
	fuzz_schema \
	# EOL
