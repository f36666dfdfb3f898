// Declares `stat` in a compilation that reads a file with `import Dispatch` before this one.
import CDispatch
import Foundation
import Storage

/// A file with a secret, accessible to its owner only.
struct PrivateFile {
    /// The kind of file, for messages: `identity file`.
    let kind: String
    let path: String

    private var name: String { "\(kind) \(path)" }

    /// - Parameters:
    ///   - limit: the maximum number of bytes read.
    ///   - remedy: how to create such a file.
    /// - Throws: ``CommandFailure`` when it is missing, can't be read, or is readable by others.
    func read(upTo limit: Int, remedy: String) throws(CommandFailure) -> [UInt8] {
        // Does not block on a pipe. The checks apply to the opened file, also behind a symbolic link, as in Kubernetes secrets.
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            switch errno {
            case ENOENT: throw CommandFailure(.data, "\(name) is missing: \(remedy)")
            case EACCES, EPERM: throw CommandFailure(.permission, "\(name) can't be read: give this user access to it")
            case let code: throw unreadable(code)
            }
        }
        let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
        var status = stat()
        guard fstat(file, &status) == 0 else { throw unreadable(errno) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw CommandFailure(.data, "\(name) is a folder: name a file") }
        guard status.st_mode & S_IFMT == S_IFREG else { throw CommandFailure(.data, "\(name) is not a file") }
        if Self.isReadableByOthers(status) {
            let mode = String(status.st_mode & 0o7777, radix: 8)
            throw CommandFailure(.permission, "\(name) is readable by others (mode 0\(mode)): chmod 600 \(path)")
        }
        do {
            return Array(try handle.read(upToCount: limit + 1) ?? Data())
        } catch {
            let underlying = (error as NSError).userInfo[NSUnderlyingErrorKey] as? NSError
            throw unreadable(Int32(underlying?.code ?? Int(EIO)))
        }
    }

    private func unreadable(_ code: Int32) -> CommandFailure {
        CommandFailure(.data, "\(name) can't be read: \(String(cString: strerror(code)))")
    }

    /// false if there is no such file.
    static func isReadableByOthers(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && isReadableByOthers(status)
    }

    /// Not only by the owner and a group. false if there is no such file.
    static func isReadableByAll(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IROTH != 0
    }

    private static func isReadableByOthers(_ status: stat) -> Bool {
        // systemd provides credentials as files owned by root that this user's group may read.
        let isCredential = status.st_uid == 0 && geteuid() != 0
        return status.st_mode & (isCredential ? 0o037 : 0o077) != 0
    }

    /// Creates the file with mode 0600 and a line of text, synced. It gets its name once it is complete: no kill leaves an empty file, with which no
    /// restart would succeed.
    ///
    /// - Parameter link: makes a hard link, like `link(2)`.
    /// - Throws: ``CommandFailure`` when it exists or can't be written.
    func create(_ line: String, link: (String, String) -> Int32 = { link($0, $1) }) throws(CommandFailure) {
        guard path != "-" else { throw CommandFailure(.usage, "\(kind) \(UnfinishedFile.noOutput)") }
        // The link decides; in a folder that can't be written to, an existing file is still the reason that counts.
        guard access(path, F_OK) != 0 else { throw notCreated(EEXIST) }
        // A name of its own, since several processes may create the file.
        let partialPath = path + "." + UUID().uuidString
        let file = open(partialPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw notCreated(errno) }
        defer {
            close(file)
            unlink(partialPath)
        }
        let text = Array((line + "\n").utf8)
        guard Foundation.write(file, text, text.count) == text.count, fsync(file) == 0 else {
            throw CommandFailure(.cannotCreate, "\(name) can't be written: is the disk full?")
        }
        guard UnfinishedFile.name(partialPath, path, link: link) else { throw notCreated(errno) }
    }

    private func notCreated(_ code: Int32) -> CommandFailure {
        CommandFailure(
            .cannotCreate, "\(name) \(DiskSpace.creationFailure(code, remedy: "is the folder there, and may this user write to it?"))")
    }
}
