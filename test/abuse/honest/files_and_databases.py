# tempfile, sqlite, shutil, zip, deep copies of files: the uses of scratch.
import os, shutil, sqlite3, tempfile, zipfile
with tempfile.TemporaryDirectory() as place, tempfile.NamedTemporaryFile(dir=place) as file:
    file.write(b"x" * 100000)
connection = sqlite3.connect("data.sqlite")
connection.execute("create table t (x)")
connection.executemany("insert into t values (?)", [(number,) for number in range(1000)])
connection.commit()
shutil.copy("input/train.csv", "copy.csv")
shutil.copytree("input", "copies")
with zipfile.ZipFile("copy.zip", "w") as archive:
    archive.write("copy.csv")
shutil.rmtree("copies")
os.rename("copy.csv", "submission.csv")
