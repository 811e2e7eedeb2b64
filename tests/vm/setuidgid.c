/* SPDX-License-Identifier: MIT */
/* setuidgid UID:GID COMMAND...: runs it as that user, with no other group. */
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	unsigned int uid, gid;

	if (argc < 3 || sscanf(argv[1], "%u:%u", &uid, &gid) != 2)
		return 111;
	if (setgroups(0, NULL) || setgid(gid) || setuid(uid))
		return 111;
	execvp(argv[2], argv + 2);
	return 111;
}
