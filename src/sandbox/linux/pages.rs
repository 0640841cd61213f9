//! Pages of the program's code that only its start needed.
//!
//! It touches code alone: what a process has written, relocations included, stands on other pages.

/// The least that is worth a call, in bytes.
const WORTH_IT: usize = 1 << 16;

/// Gives back the pages of code that are mapped now. What is needed again comes back from the page cache, by a fault
/// that takes microseconds and brings its neighbours along.
pub(in crate::sandbox) fn give_back_code() {
    // Without /proc the pages stay.
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
    maps.lines().filter_map(code).for_each(|(from, to)| give_back(from, to));
}

/// The range of a line of /proc/PID/maps, if code from a file is mapped there that nobody can have written
/// (<https://man7.org/linux/man-pages/man5/proc_pid_maps.5.html>).
fn code(line: &str) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (range, rights) = (fields.next()?, fields.next()?);
    let path = fields.nth(3)?;
    if rights != "r-xp" || !path.starts_with('/') {
        return None;
    }
    let (from, to) = range.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    let (from, to) = (address(from)?, address(to)?);
    (to.checked_sub(from)? >= WORTH_IT).then_some((from, to))
}

/// Drops the pages of a range (<https://man7.org/linux/man-pages/man2/madvise.2.html>, `MADV_DONTNEED`). A failure leaves
/// them where they are.
#[expect(unsafe_code, reason = "no safe library gives back pages of code")]
fn give_back(from: usize, to: usize) {
    let start = std::ptr::with_exposed_provenance_mut(from);
    // SAFETY: the range is one mapping of this process, of a file, without the right to write: its pages are those of
    // the file, so the next access finds the same bytes again.
    let _ = unsafe { libc::madvise(start, to - from, libc::MADV_DONTNEED) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_from_files_is_given_back() {
        let rows = [
            ("7f0000000000-7f0000100000 r-xp 00001000 fe:00 42   /usr/bin/some program", true),
            ("7f0000000000-7f0000100000 r--p 00001000 fe:00 42   /usr/bin/program", false),
            ("7f0000000000-7f0000100000 rw-p 00001000 fe:00 42   /usr/bin/program", false),
            ("7f0000000000-7f0000100000 rwxp 00001000 fe:00 42   /usr/bin/program", false),
            ("7f0000000000-7f0000100000 r-xp 00000000 00:00 0    [vdso]", false),
            ("7f0000000000-7f0000100000 r-xp 00000000 00:00 0 ", false),
            ("7f0000000000-7f0000001000 r-xp 00001000 fe:00 42   /lib/small.so", false),
            ("nonsense", false),
            ("", false),
        ];
        for (line, expected) in rows {
            let range = code(line);
            assert_eq!(range.is_some(), expected, "{line}");
            assert!(range.is_none_or(|range| range == (0x7f00_0000_0000, 0x7f00_0010_0000)));
        }
    }

    #[test]
    fn the_program_goes_on_afterwards() {
        give_back_code();
        let digits: String = (0..10).map(|digit| digit.to_string()).collect();
        assert_eq!(digits, "0123456789");
    }
}
