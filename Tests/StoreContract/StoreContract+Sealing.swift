import Storage
import Testing
import WakuCrypto

extension StoreContract {
    private static let insertLetter = Mutation(Sample.letter, .insert([Sample.number, Sample.member, Sample.content]))
    private static let findLetters = Query(Sample.letter, [Sample.number, Sample.member, Sample.content], order: [.ascending(.id)])
    private static let bindings: [[Value]] = [[.integer(1), .bytes([1])], [.integer(1), .bytes([2])], [.integer(2), .bytes([1])]]

    private static func letters(in store: any Store) throws -> [[UInt8]] {
        try store.read(.find(findLetters()) { .done(try $0.map { try $0.bytes(2) }) })
    }

    static var sealing: [StoreContract] {
        [
            StoreContract("Sealed content opens only in its row, also after reopening") { fixture in
                let store = try fixture.open()
                let secret = Array("a secret".utf8)
                try await store.commit(
                    .change(bindings.map { insertLetter($0[0], $0[1], store.sealer.seal(secret, in: Sample.letter, boundTo: $0)) }))
                try store.close()
                let reopened = try fixture.open()
                let sealed = try letters(in: reopened)
                #expect(Set(sealed).count == 3)
                for (index, content) in sealed.enumerated() {
                    #expect(content.count > secret.count && !content.starts(with: secret))
                    for (other, binding) in bindings.enumerated() {
                        #expect(
                            (try? reopened.sealer.open(content, in: Sample.letter, boundTo: binding)) == (index == other ? secret : nil))
                    }
                    var altered = content
                    altered[altered.count / 2] ^= 1
                    #expect(throws: (any Error).self) { try reopened.sealer.open(altered, in: Sample.letter, boundTo: bindings[index]) }
                }
            },
            StoreContract("A sealed key opens only in its row") { fixture in
                let store = try fixture.open()
                let key = SymmetricKey.random()
                let letter = insertLetter(.integer(1), .bytes([]), store.sealer.seal(key, in: Sample.cache, boundTo: [.text("mine")]))
                try await store.commit(.change([letter]))
                let sealed = try letters(in: store)[0]
                let opened = try #require(store.sealer.openKey(sealed, in: Sample.cache, boundTo: [.text("mine")]))
                // Keys can be compared only by encrypting and decrypting.
                let sealer = Sealer(storageKey: key, salt: nil)
                #expect(Sealer(storageKey: opened, salt: nil).opensCheck(sealer.sealCheck()))
                #expect(store.sealer.openKey(sealed, in: Sample.cache, boundTo: [.text("yours")]) == nil)
            },
            StoreContract("Another storage key is refused as another identity's; the right one still works") { fixture in
                let store = try await fixture.open(with: [Sample.Item(number: 1)])
                try store.close()
                let error = #expect(throws: StoreError.self) { try fixture.open(storageKey: .random()) }
                #expect(error?.code == .otherIdentity)
                #expect(try fixture.open().read(Sample.numbers()) == [1])
            },
            StoreContract("Properties are set, replaced and removed") { fixture in
                let store = try fixture.open()
                #expect(try store.read(Properties.property("colour")) == nil)
                try await store.commit(.change([Properties.set("colour", to: [1, 2]), Properties.set("shape", to: [])]))
                try await store.commit(.change([Properties.set("colour", to: [3])]))
                try store.close()
                let reopened = try fixture.open()
                #expect(try reopened.read(Properties.property("colour")) == [3])
                #expect(try reopened.read(Properties.property("shape")) == [])
                try await reopened.commit(.change([Properties.remove("colour"), Properties.remove("never set")]))
                #expect(try reopened.read(Properties.property("colour")) == nil)
            },
        ]
    }
}
