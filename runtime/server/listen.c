// SPDX-License-Identifier: MIT
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

int listen_unix(const char *path, struct hearth_err *err)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	struct stat st;
	int fd;

	if (strlen(path) >= sizeof(a.sun_path))
		return err_set(err, -EINVAL, "%s: the path of a socket is at most %zu bytes", path, sizeof(a.sun_path) - 1);
	strcpy(a.sun_path, path);
	/* Only a socket is removed, and only one that nobody answers. */
	if (lstat(path, &st) == 0) {
		if (!S_ISSOCK(st.st_mode))
			return err_set(err, -EEXIST, "%s exists and is not a socket", path);
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0) {
			close(fd);
			return err_set(err, -EADDRINUSE, "%s: another program listens there", path);
		}
		if (fd >= 0)
			close(fd);
		unlink(path);
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || chmod(path, 0660) || listen(fd, 128)) {
		int rc = err_set(err, -errno, "%s: cannot listen: %s", path, strerror(errno));

		if (fd >= 0)
			close(fd);
		return rc;
	}
	return fd;
}

int listen_host(const char *host, struct hearth_err *err)
{
	struct in6_addr a;

	if (!strcmp(host, "localhost") || inet_pton(AF_INET, host, &a) == 1 || inet_pton(AF_INET6, host, &a) == 1)
		return 0;
	return err_set(err, -EINVAL, "\"%s\" is not an address to listen on", host);
}

int listen_tcp(const char *host, uint16_t port, uint16_t *ret_port, struct hearth_err *err)
{
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in a4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr *a = (struct sockaddr *)&a4;
	socklen_t len = sizeof(a4);
	struct sockaddr_storage bound;
	int fd, one = 1, rc = listen_host(host, err);

	if (rc)
		return rc;
	if (!strcmp(host, "localhost"))
		host = "127.0.0.1";
	if (inet_pton(AF_INET, host, &a4.sin_addr) != 1) {
		inet_pton(AF_INET6, host, &a6.sin6_addr);
		a = (struct sockaddr *)&a6;
		len = sizeof(a6);
	}
	fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, -errno, "no socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, a, len) || listen(fd, 128)) {
		rc = err_set(err, -errno, "cannot listen on %s port %u: %s", host, port, strerror(errno));

		close(fd);
		return rc;
	}
	len = sizeof(bound);
	if (ret_port && getsockname(fd, (struct sockaddr *)&bound, &len) == 0)
		*ret_port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port :
				  ((struct sockaddr_in *)&bound)->sin_port);
	return fd;
}
