import Foundation
import TestSupport
import Testing

@testable import WakuPushCommands

struct LineReaderTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func file(_ content: String) throws -> String {
        let path = folder.path + "/file"
        try Data(content.utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func lines(of content: String, limit: Int) throws -> [String] {
        let reader = try LineReader(try file(content), maximumLineByteCount: limit)
        var lines: [String] = []
        while let line = try reader.next() { lines.append(String(decoding: line, as: UTF8.self)) }
        return lines
    }

    @Test func linesAreReadInOrder() throws {
        #expect(try lines(of: "one\n\nthree\nfour", limit: 5) == ["one", "", "three", "four"])
        #expect(try lines(of: "", limit: 5).isEmpty)
        #expect(try lines(of: "one\n", limit: 3) == ["one"])
        // Longer than one read.
        let long = String(repeating: "x", count: 200_000)
        #expect(try lines(of: "a\n\(long)\nb\n\(long)", limit: 200_000) == ["a", long, "b", long])
    }

    @Test func readPartIsKnownForFiles() throws {
        let reader = try LineReader(try file(String(repeating: "x\n", count: 100_000)), maximumLineByteCount: 5)
        #expect(reader.share == 0)
        _ = try reader.next()
        // One read of 64 KiB.
        #expect(reader.share == 0.32768)
        while try reader.next() != nil {}
        #expect(reader.share == 1)
        #expect(try LineReader("/dev/null", maximumLineByteCount: 5).share == nil)
    }

    @Test func longerLinesAreRefused() throws {
        for content in ["four\n", "four", "one\nfour\nsix", String(repeating: "x", count: 1 << 20)] {
            let error = #expect(throws: LineReader.Failure.self) { try lines(of: content, limit: 3) }
            #expect(error?.reason == "has a line of more than 3 bytes")
        }
    }

    @Test func missingFilesAreReported() throws {
        let error = #expect(throws: LineReader.Failure.self) { try LineReader(folder.path + "/missing", maximumLineByteCount: 3) }
        #expect(error?.reason == "can't be read: is it there, and may this user read it?")
    }

    @Test func secretsOfMoreThan64KiBAreRefused() throws {
        #expect(try SecretFile.read(try file(String(repeating: "x", count: 65_536))).count == 65_536)
        let path = try file(String(repeating: "x", count: 65_537))
        let error = #expect(throws: CommandFailure.self) { try SecretFile.read(path) }
        #expect(error?.message == "secret file \(path) has more than 65536 bytes: it must contain a single line")
        let password = #expect(throws: CommandFailure.self) { try SecretInput.password(path) }
        #expect(password?.message == "password file \(path) has a line of more than 65536 bytes")
    }
}
