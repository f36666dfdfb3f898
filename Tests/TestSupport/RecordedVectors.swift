import Foundation

/// Decodes `Vectors/NAME.json`, whose keys are in snake case.
func recordedVectors<Vectors: Decodable>(_ name: String) -> Vectors {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    do {
        guard let file = Bundle.module.url(forResource: name, withExtension: "json", subdirectory: "Vectors") else {
            preconditionFailure("\(name) is not among the resources of the tests")
        }
        return try decoder.decode(Vectors.self, from: Data(contentsOf: file))
    } catch {
        preconditionFailure("\(name) can't be read: \(error)")
    }
}
