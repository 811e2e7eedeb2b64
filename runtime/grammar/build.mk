# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/grammar/ast.c \
	runtime/grammar/compile.c \
	runtime/grammar/gbnf.c \
	runtime/grammar/match.c \
	runtime/grammar/number.c \
	runtime/grammar/regex.c \
	runtime/grammar/schema.c \
	runtime/grammar/vocab.c \
	# EOL
PKGS += jansson
TESTS += \
	test_grammar \
	test_schema \
	# EOL
FUZZERS += \
	fuzz_gbnf \
	fuzz_schema \
	# EOL
