import Foundation
import TestSupport
import Testing

/// All tests that the Privacy article names exist.
struct ThreatModelTests {
    @Test func testsNamedInThePrivacyArticleExist() throws {
        let article = try String(contentsOf: Repository.file("Sources/Node/PushNode/PushNode.docc/Privacy.md"), encoding: .utf8)
        var sources: [String] = []
        let files = FileManager.default.enumerator(at: Repository.file("Tests"), includingPropertiesForKeys: nil)
        while let file = files?.nextObject() as? URL {
            if file.pathExtension == "swift" { sources.append(try String(contentsOf: file, encoding: .utf8)) }
        }
        let names = article.matches(of: /`([A-Z][A-Za-z0-9]*Tests)(\.([a-z][A-Za-z0-9]*))?`/)
        #expect(names.count > 40)
        for name in names {
            let suite = sources.first { $0.contains("struct \(name.1) {") }
            #expect(suite != nil, "there is no suite \(name.1)")
            if let test = name.3 { #expect(suite?.contains("func \(test)(") == true, "there is no test \(name.1).\(test)") }
        }
    }
}
