/// The committed changes in a write-ahead log, read as in SQLite's recovery: https://www.sqlite.org/fileformat2.html#walformat
///
///     log       magic(4) ‖ version(4) ‖ page size(4) ‖ checkpoint(4) ‖ salt(8) ‖ checksum(8) ‖ frame ‖ frame ‖ …
///     frame     page number(4) ‖ pages of the database, 0 unless it commits(4) ‖ salt(8) ‖ checksum(8) ‖ page
///
/// Numbers are big-endian. A checksum covers the header and all frames up to its own, without their salts and checksums. The log
/// ends before the first frame with another salt (left over from before a checkpoint) or a wrong checksum. Frames after the last commit
/// belong to an interrupted transaction. With SQLCipher, pages are encrypted as in the database file.
struct WriteAheadLog {
    static let headerByteCount = 32
    private static let frameHeaderByteCount = 24
    private static let version: UInt32 = 3_007_000

    let pageByteCount: Int
    /// The number of pages of the database after the last commit.
    private(set) var pageCount = 0
    /// The number of frames up to the last commit.
    private(set) var frameCount = 0
    /// The position in the log of each page's newest committed content, by page number.
    private(set) var positions: [UInt32: Int] = [:]

    /// Reads the log once, a frame at a time.
    ///
    /// - Returns: nil if it contains no commit: it is empty, was reset, or has an incomplete header, which SQLite treats as an empty log.
    init?(_ file: InputFile) {
        var header = [UInt8](repeating: 0, count: Self.headerByteCount)
        guard header.withUnsafeMutableBytes({ file.read(into: $0, at: 0) }) else { return nil }
        let (magic, version, size) = (header.number(at: 0), header.number(at: 4), header.number(at: 8))
        guard magic & ~1 == 0x377f_0682, version == Self.version, (512...65_536).contains(size), size.nonzeroBitCount == 1 else {
            return nil
        }
        var checksum = Checksum(isBigEndian: magic & 1 == 1)
        header.withUnsafeBytes { checksum.add(UnsafeRawBufferPointer(rebasing: $0[..<24])) }
        guard checksum.matches(header, at: 24) else { return nil }
        pageByteCount = Int(size)
        readFrames(file, salt: Array(header[16..<24]), checksum)
        guard frameCount > 0 else { return nil }
    }

    private mutating func readFrames(_ file: InputFile, salt: [UInt8], _ first: Checksum) {
        var (checksum, position, count) = (first, Self.headerByteCount, 0)
        var uncommitted: [UInt32: Int] = [:]
        var frame = [UInt8](repeating: 0, count: Self.frameHeaderByteCount + pageByteCount)
        while frame.withUnsafeMutableBytes({ file.read(into: $0, at: position) }) {
            let number = frame.number(at: 0)
            guard number > 0, frame[8..<16].elementsEqual(salt) else { return }
            frame.withUnsafeBytes { bytes in
                checksum.add(UnsafeRawBufferPointer(rebasing: bytes[..<8]))
                checksum.add(UnsafeRawBufferPointer(rebasing: bytes[Self.frameHeaderByteCount...]))
            }
            guard checksum.matches(frame, at: 16) else { return }
            uncommitted[number] = position + Self.frameHeaderByteCount
            count += 1
            let committed = frame.number(at: 4)
            if committed > 0 {
                positions.merge(uncommitted) { $1 }
                uncommitted.removeAll(keepingCapacity: true)
                (pageCount, frameCount) = (Int(committed), count)
            }
            position += frame.count
        }
    }

    /// Writes the committed pages into a copy of the database.
    ///
    /// - Parameter image: the copy, with room for ``pageCount`` pages.
    /// - Returns: false if the log became shorter.
    func apply(_ file: InputFile, to image: UnsafeMutableRawBufferPointer) -> Bool {
        // A later commit may have made the database shorter.
        positions.filter { $0.key <= pageCount }.allSatisfy { number, position in
            let start = (Int(number) - 1) * pageByteCount
            return file.read(into: UnsafeMutableRawBufferPointer(rebasing: image[start..<start + pageByteCount]), at: position)
        }
    }

    /// Fibonacci-weighted sums of 32-bit words. The log's magic number names their byte order.
    private struct Checksum {
        let isBigEndian: Bool
        private(set) var first: UInt32 = 0
        private(set) var second: UInt32 = 0

        /// - Parameter bytes: a multiple of 8.
        mutating func add(_ bytes: UnsafeRawBufferPointer) {
            for offset in stride(from: 0, to: bytes.count, by: 8) {
                first &+= word(bytes, offset) &+ second
                second &+= word(bytes, offset + 4) &+ first
            }
        }

        private func word(_ bytes: UnsafeRawBufferPointer, _ offset: Int) -> UInt32 {
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return isBigEndian ? UInt32(bigEndian: word) : UInt32(littleEndian: word)
        }

        func matches(_ bytes: [UInt8], at offset: Int) -> Bool {
            bytes.number(at: offset) == first && bytes.number(at: offset + 4) == second
        }
    }
}

extension [UInt8] {
    /// 4 bytes, big-endian.
    fileprivate func number(at offset: Int) -> UInt32 {
        self[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
    }
}
