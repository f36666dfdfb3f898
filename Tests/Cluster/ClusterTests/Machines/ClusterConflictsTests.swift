@testable import Cluster
import Core
import Testing

@Suite struct ClusterConflictsTests {
    private func lease(_ number: UInt64, _ name: String, _ settings: [String: String]?, _ state: LeaseRow.State = .live) -> LeaseRow {
        LeaseRow(node: .number(number), state: state, name: name, settings: settings)
    }

    private func find(_ leases: LeaseRow...) -> [String] {
        ClusterConflicts.find(in: ClusterView(isMember: true, leases: leases, partitions: []), of: .number(1))
    }

    private let settings = ["--limit queries": "off", "--max-request-age": "600 s"]

    @Test func equalNodesHaveNone() {
        #expect(find(lease(1, "a", settings), lease(2, "b", settings), lease(3, "c", settings, .draining)) == [])
    }

    @Test func differentValuesAreNamed() {
        #expect(
            find(lease(1, "a", settings), lease(2, "b", ["--limit queries": "5/s", "--max-request-age": "600 s"]))
                == ["--limit queries is off here and 5/s at b"])
    }

    @Test func nodesWithTheSameOtherValueShareALine() {
        func other(_ number: UInt64, _ name: String, _ limit: String) -> LeaseRow { lease(number, name, ["--limit queries": limit]) }
        #expect(
            find(lease(1, "a", settings), other(2, "c", "5/s"), other(3, "b", "5/s"), other(4, "d", "6/s"), other(5, "e", "off"))
                == ["--limit queries is off here and 5/s at b, c", "--limit queries is off here and 6/s at d"])
    }

    @Test func disputedSettingsAreThoseThatALiveNodeHasOtherwise() {
        let other = ["--limit queries": "5/s", "--max-request-age": "600 s", "--new": "on"]
        func disputed(_ state: LeaseRow.State) -> Set<String> {
            let leases = [lease(1, "a", settings), lease(2, "b", other, state), lease(3, "c", nil)]
            return ClusterConflicts.settings(in: ClusterView(isMember: true, leases: leases, partitions: []), of: .number(1))
        }
        #expect(disputed(.draining) == ["--limit queries"])
        #expect(disputed(.ended).isEmpty)
    }

    /// Its release would post a Web Push device to gorush, as an iOS one.
    @Test func liveNodesThatDoNotKnowWebPushAreNamed() {
        let on = ["--web-push": "1 keys"]
        for theirs in [nil, [:], settings] {
            #expect(find(lease(1, "a", on), lease(2, "b", theirs), lease(3, "c", on)).map { $0.contains("release of b:") } == [true])
            #expect(find(lease(1, "a", on), lease(2, "b", theirs, .ended), lease(3, "c", on)) == [])
            #expect(find(lease(1, "a", ["--web-push": "off"]), lease(2, "b", theirs)) == [])
        }
    }

    @Test func unknownSettingsAreThoseThatALiveNodeDoesNotTell() {
        func unknown(_ theirs: [String: String]?, _ state: LeaseRow.State = .live) -> Set<String> {
            let leases = [lease(1, "a", settings), lease(2, "b", theirs, state)]
            return ClusterConflicts.unknownSettings(in: ClusterView(isMember: true, leases: leases, partitions: []), of: .number(1))
        }
        #expect(unknown(settings.mapValues { _ in "other" }).isEmpty)
        #expect(unknown(["--limit queries": "off", "--new": "on"], .draining) == ["--max-request-age"])
        #expect(unknown(nil) == Set(settings.keys))
        #expect(unknown(nil, .ended).isEmpty)
    }

    @Test func twoLiveNodesOfOneNameAreNamed() {
        #expect(find(lease(1, "a", settings), lease(2, "a", settings)).count == 1)
        #expect(find(lease(1, "a", settings), lease(2, "a", settings, .ended)) == [])
    }

    /// As after the data folder of one was copied for the other.
    @Test func twoLiveNodesWithOneKeyAreNamed() throws {
        let nodes = ["16U1", "16U1", "16U2"].enumerated().map { number, key in
            lease(UInt64(number) + 1, "node-\(number)", settings.merging([ClusterConflicts.nodeKey: key]) { $1 })
        }
        #expect(find(nodes[0], nodes[2]) == [])
        let conflicts = find(nodes[0], nodes[1], nodes[2])
        #expect(conflicts.count == 1)
        #expect(try #require(conflicts.first).hasPrefix("--node-key is that of node-1 too"))
        #expect(ClusterConflicts.settings(in: ClusterView(isMember: true, leases: nodes, partitions: []), of: .number(1)).isEmpty)
    }

    /// Of an earlier or a later release.
    @Test func optionsThatANodeDoesNotTellAreNotCompared() {
        #expect(find(lease(1, "a", settings), lease(2, "b", nil), lease(3, "c", ["--new": "on"])) == [])
        #expect(find(lease(1, "a", nil), lease(2, "b", settings)) == [])
    }

    /// Its own settings stay comparable, and only the node in trouble has the mark.
    @Test(arguments: LeaseRow.Trouble.allCases) func aNodeInTroubleSaysSo(trouble: LeaseRow.Trouble) throws {
        var member = ClusterMember(.number(2), name: "b", configuration: ClusterConfiguration(), at: Instant(sinceEpoch: .zero))
        (member.settings, member.isDraining, member.trouble) = (settings, true, trouble)
        let heartbeat = member.heartbeat(at: Instant(sinceEpoch: .zero))
        let row = try #require(heartbeat).lease
        #expect(row.state == .draining && row.stateName == trouble.rawValue)
        #expect(lease(3, "c", settings, .draining).stateName == "draining")
        #expect(find(lease(1, "a", settings), row) == [])
        #expect(find(lease(1, "a", settings.merging(trouble.settings) { $1 }), lease(3, "c", settings), row) == [])
        #expect(find(lease(1, "a", ["--max-request-age": "1 s"]), row) == ["--max-request-age is 1 s here and 600 s at b"])
    }

    @Test func settingsAreKeptAsText() {
        let row = lease(1, "a", ["--x": "a=b", "--limit y": ""])
        #expect(row.settingsText == "--limit y=\n--x=a=b")
        #expect(LeaseRow.settings(parsing: row.settingsText ?? "") == row.settings)
        #expect(LeaseRow.settings(parsing: "") == [:] && LeaseRow.settings(parsing: "=\nx") == ["": ""])
        let longest = "a=" + String(repeating: "b", count: 16_382)
        #expect(LeaseRow.settings(parsing: longest)?.count == 1 && LeaseRow.settings(parsing: longest + "b") == nil)
    }
}
