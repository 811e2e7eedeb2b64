# SPDX-License-Identifier: MIT
PKGS += \
	alsa \
	pocketsphinx \
	sndfile \
	soxr \
	sphinxbase \
	# EOL
