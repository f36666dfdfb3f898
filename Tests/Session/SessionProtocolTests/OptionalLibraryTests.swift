import Foundation
import TestSupport
import Testing

/// Compares the declarations of the C targets with the real headers, and checks the ELF notes by which package builders find the libraries.
@Suite struct OptionalLibraryTests {
    private static let sources = Repository.file("Sources/C").path

    @Test func prototypesOfSodiumMatchItsHeader() async {
        await expectToCompile(
            """
            #include <sodium.h>
            #include "CSodium.h"
            #define CHECK(result, name, parameters) \\
                _Static_assert(__builtin_types_compatible_p(result(*) parameters, __typeof__(&name)), #name);
            CSODIUM_FUNCTIONS(CHECK)
            """)
    }

    @Test func prototypesOfPostgreSQLMatchItsHeader() async {
        await expectToCompile(
            """
            #include <stddef.h>
            #include <libpq-fe.h>
            #include "CPostgres.h"
            #define MEMBER(name) \\
                _Static_assert(offsetof(cpq_conninfo_option, name) == offsetof(PQconninfoOption, name), #name);
            MEMBER(keyword) MEMBER(envvar) MEMBER(compiled) MEMBER(val) MEMBER(label) MEMBER(dispchar) MEMBER(dispsize)
            _Static_assert(sizeof(cpq_conninfo_option) == sizeof(PQconninfoOption), "option");
            // The layout is the same: so the functions may take either.
            #define CHECK_NOTIFY(name) \\
                _Static_assert(offsetof(cpq_notify, name) == offsetof(PGnotify, name), #name);
            CHECK_NOTIFY(relname) CHECK_NOTIFY(be_pid) CHECK_NOTIFY(extra)
            #define cpq_notify PGnotify
            #define cpq_conninfo_option PQconninfoOption
            #define CHECK(result, name, parameters) \\
                _Static_assert(__builtin_types_compatible_p(result(*) parameters, __typeof__(&name)), #name);
            CPOSTGRES_FUNCTIONS(CHECK)
            #define NUMBER(name, value) _Static_assert(name == value, #name);
            CPOSTGRES_NUMBERS(NUMBER)
            """)
    }

    @Test func mismatchDoesNotCompile() async throws {
        await #expect(throws: TestFailure.self) {
            try await compile(
                """
                #include <sodium.h>
                _Static_assert(__builtin_types_compatible_p(int (*)(int), __typeof__(&crypto_scalarmult_base)), "wrong");
                """)
        }
    }

    private func expectToCompile(_ code: String) async {
        await #expect(throws: Never.self) { try await compile(code) }
    }

    /// <https://systemd.io/ELF_DLOPEN_METADATA/>: owner FDO, type 0x407c0c0a, JSON with the name of the library.
    @Test(arguments: [("libsodium.so.23", "session"), ("libpq.so.5", "postgresql")])
    func programNamesTheLibraryInAnELFNote(soname: String, feature: String) async throws {
        let program = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let notes = try await ExternalTool.run("readelf", ["--wide", "--notes", "--string-dump=.note.dlopen", program]).output
        #expect(notes.contains(/FDO +0x[0-9a-f]+\s+Unknown note type: \(0x407c0c0a\)/))
        let note = try #require(notes.matches(of: /\[\{.*\}\]/).map(\.output).first { $0.contains(soname) })
        let entries = try JSONDecoder().decode([Note].self, from: Data(note.utf8))
        #expect(entries.map(\.soname) == [[soname]])
        #expect(entries.first?.feature == feature)
    }

    private struct Note: Decodable {
        let feature: String
        let soname: [String]
    }

    /// - Throws: ``TestFailure`` with the compiler's output.
    private func compile(_ source: String) async throws {
        let ended = try await ExternalTool.run(
            "cc",
            ["-fsyntax-only", "-Wall", "-I/usr/include/postgresql"]
                + ["CSodium", "CPostgres"].map { "-I\(Self.sources)/\($0)/include" } + ["-xc", "-"],
            input: source)
        guard ended.status == 0 else { throw TestFailure(ended.errors) }
    }
}
