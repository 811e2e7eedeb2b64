# SPDX-License-Identifier: MIT
RT_SRCS += \
	runtime/voice/account.c \
	runtime/voice/alsa.c \
	runtime/voice/audio.c \
	runtime/voice/resample.c \
	runtime/voice/ring.c \
	runtime/voice/tts.c \
	runtime/voice/tts_espeak.c \
	runtime/voice/tts_flite.c \
	runtime/voice/wav_read.c \
	runtime/voice/wav_write.c \
	# EOL
PKGS += \
	alsa \
	pocketsphinx \
	sndfile \
	soxr \
	sphinxbase \
	# EOL
LIBS += -lflite_usenglish -lflite_cmulex -lflite
RT_SRCS += \
	runtime/voice/chunker.c \
	runtime/voice/number.c \
	runtime/voice/plain.c \
	runtime/voice/speak.c \
	runtime/voice/trace.c \
	# EOL
TESTS += \
	test_chunker \
	test_speak \
	test_trace \
	# EOL
FUZZERS += \
	fuzz_chunker \
	# EOL
