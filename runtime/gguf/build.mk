# SPDX-License-Identifier: MIT
# EOL
