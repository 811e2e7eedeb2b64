// SPDX-License-Identifier: GPL-2.0-only
/*
 * The files of regions. They live in a file system of their own, which nobody
 * can mount or open by name, because every region needs an inode to itself: its
 * mappings are then found, and cut off, through that inode alone. (The inode
 * that anonymous files share would cut off other drivers' mappings too.)
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>

#include "priv.h"

#define HEARTH_FS_MAGIC 0x48525448 /* "HRTH" */

/*
 * The mount is there while a connection or a region is, and holds the module
 * itself, through its type. A file puts its mount after it has put its module;
 * a mount of our own that did not hold the module could then be the last to use
 * its code.
 */
static struct vfsmount *hearth_mnt;
static int hearth_mnt_count;

static int fs_init_context(struct fs_context *fc)
{
	return init_pseudo(fc, HEARTH_FS_MAGIC) ? 0 : -ENOMEM;
}

static struct file_system_type hearth_fs = {
	.name = "hearth",
	.owner = THIS_MODULE,
	.init_fs_context = fs_init_context,
	.kill_sb = kill_anon_super,
};

static int region_release(struct inode *inode, struct file *file)
{
	struct hearth_region *r = file->private_data;

	atomic_dec(&r->files);
	hearth_region_put(r);
	return 0;
}

static int region_mmap(struct file *file, struct vm_area_struct *vma)
{
	return hearth_region_mmap(file->private_data, vma);
}

static const struct file_operations region_fops = {
	.owner = THIS_MODULE,
	.release = region_release,
	.mmap = region_mmap,
	.unlocked_ioctl = hearth_region_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

struct inode *hearth_inode_new(u64 bytes)
{
	struct inode *inode = alloc_anon_inode(hearth_mnt->mnt_sb);

	if (!IS_ERR(inode))
		i_size_write(inode, min_t(u64, bytes, MAX_LFS_FILESIZE));
	return inode;
}

/* Another open file of @r, with a reference of its own. */
struct file *hearth_file_new(struct hearth_region *r, bool writable)
{
	struct file *file;

	/* fput gives this back, as for a file that was opened. */
	__module_get(THIS_MODULE);
	ihold(r->inode);
	file = alloc_file_pseudo(r->inode, hearth_mnt, "hearth",
				 (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC, &region_fops);
	if (IS_ERR(file)) {
		iput(r->inode);
		module_put(THIS_MODULE);
		return file;
	}
	kref_get(&r->ref);
	atomic_inc(&r->files);
	file->private_data = r;
	return file;
}

/* For each connection and each region; undone by hearth_fs_unpin. */
int hearth_fs_pin(void)
{
	return simple_pin_fs(&hearth_fs, &hearth_mnt, &hearth_mnt_count);
}

void hearth_fs_unpin(void)
{
	simple_release_fs(&hearth_mnt, &hearth_mnt_count);
}
