import Core
import NodeAssembly
import StatusProtocol
import Storage
import Synchronization
import TestSupport
import Testing
import WakuCrypto

@testable import StatusV01Server

/// Nodes that change a record of version 0.1 at the same moment, without a change of its version.
extension StoreContract {
    private struct Nodes {
        let store: any Store

        var records: Records { Records(store.sealer) }

        func register(_ account: V01Account, version: UInt64) async throws {
            #expect(try await store.commit(registering(account, version: version)))
        }

        func registering(_ account: V01Account, version: UInt64) -> StoreCommand<Bool> {
            let preferences = account.preferences(version: version).encoded()
            return records.merge(
                RecordExport(
                    keyHash: account.keyHash, version: version, changedAt: Timestamp(rawValue: Int64(version)), preferences: preferences))
        }

        func ending(_ installation: String, of account: V01Account, version: UInt64) throws -> StoreCommand<Void> {
            let row = try #require(try devices(of: account)[InstallationID(installation)])
            return records.endDevice(row, version: version, at: Timestamp(rawValue: 100))
        }

        func removing(_ account: V01Account) -> StoreCommand<Bool> { Records.remove(account.keyHash, at: Timestamp(rawValue: 100)) }

        func devices(of account: V01Account) throws -> [InstallationID: Int64] {
            try store.read(.find(Records.devicesRead(account.keyHash)) { .done(try Records.devices($0)) })
        }

        func record(of account: V01Account) throws -> V01.Preferences? { try store.read(records.preferences(of: account.keyHash)) }

        func owner(of token: AccessToken) throws -> V01.KeyHash? {
            try store.read(.find(records.ownerRead(token, at: nil)) { .done(try Records.owner($0)) })
        }

        /// Commits a command after others that are committed between its reads and its changes. It runs again if that is a conflict.
        func commit<Outcome>(_ command: StoreCommand<Outcome>, decidedBefore others: StoreCommand<Void>...) async throws -> Outcome {
            var decided = command
            while case .read(let reads, let next) = decided { decided = try next(try store.read(.read(reads) { .done($0) })) }
            for other in others { try await store.commit(other) }
            let early = decided
            let isFirst = Mutex(true)
            return try await store.commit(
                .read([]) { _ in
                    let isEarly = isFirst.withLock { first in
                        defer { first = false }
                        return first
                    }
                    return isEarly ? early : command
                })
        }
    }

    static var v01Records: [StoreContract] {
        [
            StoreContract("A version 0.1 renewal that meets the end of its record keeps its access token") { fixture in
                let nodes = Nodes(store: try fixture.open(NodeAssembly.parts))
                let ends: [(V01Account) throws -> StoreCommand<Void>] = [
                    { try nodes.ending("phone", of: $0, version: 5) },
                    { nodes.removing($0).map { _ in } },
                    { account in
                        let time = Timestamp(rawValue: 100)
                        return Records.expire(account.keyHash, unchangedSince: time, at: time).map { _ in }
                    },
                ]
                for end in ends {
                    let account = V01Account(of: PrivateKey.generate().publicKey)
                    try await nodes.register(account, version: 5)
                    let isStored = try await nodes.commit(nodes.registering(account, version: 6), decidedBefore: try end(account))
                    #expect(isStored)
                    #expect(try nodes.record(of: account) == account.preferences(version: 6))
                    #expect(try nodes.owner(of: account.accessToken) == account.keyHash)
                    #expect(try nodes.devices(of: account).count == 1)
                }
            },
            StoreContract("The end of a device does not bring back its version 0.1 record, which was ended meanwhile") { fixture in
                let nodes = Nodes(store: try fixture.open(NodeAssembly.parts))
                let account = V01Account(
                    of: PrivateKey.generate().publicKey, devices: [V01Account.device("a"), V01Account.device("b", token: "other")])
                try await nodes.register(account, version: 5)
                try await nodes.commit(
                    try nodes.ending("a", of: account, version: 5),
                    decidedBefore: nodes.removing(account).map { _ in })
                #expect(try nodes.record(of: account) == nil)
                #expect(try nodes.owner(of: account.accessToken) == nil)
                #expect(try nodes.devices(of: account).isEmpty)
            },
            StoreContract("Of two devices of a version 0.1 record that end at two nodes at once, neither comes back") { fixture in
                let nodes = Nodes(store: try fixture.open(NodeAssembly.parts))
                for others in [[], [V01Account.device("c", token: "third")]] {
                    let account = V01Account(
                        of: PrivateKey.generate().publicKey,
                        devices: [V01Account.device("a"), V01Account.device("b", token: "other")] + others)
                    try await nodes.register(account, version: 5)
                    try await nodes.commit(
                        try nodes.ending("a", of: account, version: 5), decidedBefore: try nodes.ending("b", of: account, version: 5))
                    #expect(try nodes.record(of: account)?.devices ?? [] == others)
                    #expect(try nodes.devices(of: account).count == others.count)
                    #expect(try nodes.owner(of: account.accessToken) == (others.isEmpty ? nil : account.keyHash))
                }
            },
            StoreContract("The second of two ends of a version 0.1 record leaves its access token to another account") { fixture in
                let nodes = Nodes(store: try fixture.open(NodeAssembly.parts))
                let account = V01Account(of: PrivateKey.generate().publicKey)
                let other = V01Account(of: account.server, accessToken: account.accessToken)
                try await nodes.register(account, version: 5)
                let isRemoved = try await nodes.commit(
                    nodes.removing(account),
                    decidedBefore: nodes.removing(account).map { _ in },
                    Records.retiredTokens.remove(before: .max, limit: 10).map { _ in }, nodes.registering(other, version: 1).map { _ in })
                #expect(!isRemoved)
                #expect(try nodes.owner(of: account.accessToken) == other.keyHash)
            },
            StoreContract("An access token that a version 0.1 record had is its account's for 30 days") { fixture in
                let nodes = Nodes(store: try fixture.open(NodeAssembly.parts))
                let account = V01Account(of: PrivateKey.generate().publicKey)
                let other = V01Account(of: account.server, accessToken: account.accessToken)
                var renewed = account
                renewed.accessToken = V01Account.newToken()
                // Replaced, ended with its device, and removed.
                try await nodes.register(account, version: 1)
                try await nodes.register(renewed, version: 2)
                #expect(try await !nodes.store.commit(nodes.registering(other, version: 1)))
                try await nodes.register(account, version: 3)
                try await nodes.store.commit(try nodes.ending("phone", of: account, version: 3))
                #expect(try nodes.owner(of: account.accessToken) == nil)
                #expect(try await !nodes.store.commit(nodes.registering(other, version: 1)))
                try await nodes.register(account, version: 4)
                #expect(try await nodes.store.commit(nodes.removing(account)))
                #expect(try await !nodes.store.commit(nodes.registering(other, version: 1)))
                let end = Timestamp(rawValue: 100) + Records.tokenRetirement
                #expect(try await nodes.store.commit(Records.retiredTokens.remove(before: end.rawValue, limit: 10)) == 1)
                #expect(try await !nodes.store.commit(nodes.registering(other, version: 1)))
                #expect(try await nodes.store.commit(Records.retiredTokens.remove(before: end.rawValue + 1, limit: 10)) == 1)
                #expect(try await nodes.store.commit(nodes.registering(other, version: 1)))
            },
            StoreContract("An access token that another account got at a node of an earlier release stays with that account") { fixture in
                let nodes = Nodes(store: try fixture.open(NodeAssembly.parts))
                let account = V01Account(of: PrivateKey.generate().publicKey)
                let other = V01Account(of: account.server, accessToken: account.accessToken)
                try await nodes.register(other, version: 1)
                guard case .bytes(let token) = nodes.records.tokenHash(account.accessToken, at: nil) else { throw UnexpectedValue() }
                #expect(
                    try await nodes.store.commit(Records.merge((token: token, keyHash: account.keyHash.stored, expiresAt: .max))))
                #expect(try await nodes.store.commit(nodes.registering(other, version: 2)))
                #expect(try await !nodes.store.commit(nodes.registering(account, version: 1)))
                #expect(try nodes.owner(of: account.accessToken) == other.keyHash)
            },
        ]
    }
}
